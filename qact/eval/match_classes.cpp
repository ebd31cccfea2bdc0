#include "qact/eval/match_classes.h"

#include <numeric>

#include "qact/base/fail.h"

namespace qact::eval {
namespace {

// Joined by commas; of many names, the first.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

std::vector<bool> present(const data::Split& images, int64_t classes) {
  std::vector<bool> out(classes);
  for (const int64_t label : images.labels) out[label] = true;
  return out;
}

// The model's label of each of the images' classes; -1 where it has none.
std::vector<int64_t> labels_in(const ModelClasses& model, const data::Split& images,
                               const std::string& source) {
  if (!model.names.empty() && !images.class_names.empty()) {
    return data::indices_of(images.class_names, model.names);
  }
  if (model.count != images.classes) {
    base::fail("eval", "expected the ", model.count,
               " classes of the model, by number since they have no names, got ", images.classes,
               " in ", source);
  }
  std::vector<int64_t> same(images.classes);
  std::iota(same.begin(), same.end(), 0);
  return same;
}

}  // namespace

data::Split with_labels_of(const ModelClasses& model, data::Split images,
                           const std::string& source) {
  const std::vector<int64_t> label_of = labels_in(model, images, source);
  const std::vector<bool> there = present(images, images.classes);
  std::vector<std::string> unknown;
  for (size_t label = 0; label < label_of.size(); ++label) {
    if (there[label] && label_of[label] < 0) unknown.push_back(images.class_names[label]);
  }
  if (!unknown.empty()) {
    base::fail("eval", "expected images of the model's classes (", listed(model.names), "), got ",
               listed(unknown), " in ", source);
  }
  for (int64_t& label : images.labels) label = label_of[label];
  images.classes = static_cast<int>(model.count);
  images.class_names = model.names;
  return images;
}

std::string missing_classes(const ModelClasses& model, const data::Split& images,
                            const std::string& source) {
  const std::vector<bool> there = present(images, model.count);
  std::vector<std::string> missing;
  for (int64_t label = 0; label < model.count; ++label) {
    if (there[label]) continue;
    missing.push_back(model.names.empty() ? std::to_string(label) : model.names[label]);
  }
  if (missing.empty()) return "";
  return source + " has no test images of " + std::to_string(missing.size()) + " of the " +
         std::to_string(model.count) + " classes of the model: " + listed(missing);
}

}  // namespace qact::eval
