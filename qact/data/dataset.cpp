#include <algorithm>
#include <cstdlib>

#include "qact/base/fail.h"
#include "qact/data/custom.h"
#include "qact/data/file.h"
#include "qact/data/sets.h"

namespace qact::data {

using base::fail;

const std::vector<Dataset>& datasets() {
  static const std::vector<Dataset> table = {
      mnist_small(),   mnist(),     fashion_mnist(), cifar10(),         cifar100(),
      tiny_imagenet(), cifar10_c(), cifar100_c(),    tiny_imagenet_c(), mnist_c(),
  };
  return table;
}

const Dataset& find_dataset(const std::string& name) {
  std::string names;
  for (const Dataset& dataset : datasets()) {
    if (dataset.name == name) return dataset;
    names += (names.empty() ? "" : ", ") + dataset.name;
  }
  fail("data", "expected a dataset's name (", names, "), got ", name,
       fs::is_directory(name) ? ": a folder is written with a /, as " + name + "/" : "");
}

fs::path data_folder(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* folder = std::getenv("QACT_DATA"); folder && *folder) return folder;
  const char* home = std::getenv("HOME");
  return fs::path(home ? home : ".") / ".cache" / "qact";
}

bool is_present(const Dataset& dataset, const fs::path& data_folder) {
  return dataset.embedded || fs::is_directory(data_folder / dataset.name);
}

Opened open_dataset(const std::string& name_or_path, const fs::path& data_folder, const Fit& fit) {
  if (name_or_path.find('/') != std::string::npos) return describe_custom(name_or_path, fit);
  const Dataset& dataset = find_dataset(name_or_path);
  const fs::path folder = data_folder / dataset.name;
  if (is_present(dataset, data_folder)) return {dataset, folder};
  for (const fs::path& path : {data_folder, folder}) {
    if (fs::exists(path)) expect_folder(path);
  }
  fail("data", "expected ", dataset.name, " in ", folder.string(),
       ", got nothing there: `qact data fetch ", dataset.name, "` gets it");
}

namespace {

void check_which(const Dataset& dataset, const Which& which) {
  if (dataset.clean.empty()) {
    if (which.corruption != "none" || which.severity != 0) {
      fail(dataset.name, "expected the corruption none at severity 0 of a clean set, got ",
           which.corruption, " at ", which.severity);
    }
    return;
  }
  const auto& known = dataset.corruptions;
  if (std::find(known.begin(), known.end(), which.corruption) == known.end()) {
    fail(dataset.name, "expected one of its corruptions, got ", which.corruption);
  }
  if (which.severity < 1 || which.severity > dataset.severities) {
    fail(dataset.name, "expected a severity of 1 to ", dataset.severities, ", got ",
         which.severity);
  }
  if (which.part == Part::kTrain && dataset.train == 0) {
    fail(dataset.name, "expected its test part, got train, of which it has none");
  }
}

}  // namespace

Split Opened::read(const Which& which) const {
  check_which(dataset, which);
  Split split = dataset.read(folder, which);
  // A part of a folder of one's own may lack images of the last classes.
  split.classes = std::max(split.classes, dataset.classes);
  if (split.class_names.empty()) split.class_names = dataset.class_names;
  return split;
}

}  // namespace qact::data
