#include "qact/corrupt/select.h"

#include <algorithm>

#include "qact/base/each_once.h"
#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {
namespace {

bool has_mnist_size(image::Size size) { return size == image::Size{28, 28, 1}; }

bool belongs(const Corruption& corruption, const std::string& group) {
  if (group == "benchmark") return corruption.benchmark;
  if (group == "extra") return corruption.extra;
  return group == "mnist" && corruption.mnist_severity > 0;
}

}  // namespace

std::vector<std::string> select_corruptions(const std::vector<std::string>& selection,
                                            image::Size size) {
  if (selection.empty())
    return select_corruptions({has_mnist_size(size) ? "mnist" : "benchmark"}, size);
  std::vector<std::string> names;
  for (const std::string& name : selection) {
    if (name != "benchmark" && name != "extra" && name != "mnist") {
      names.emplace_back(find_corruption(name).name);
      continue;
    }
    for (const Corruption& corruption : corruptions()) {
      if (belongs(corruption, name)) names.emplace_back(corruption.name);
    }
  }
  return base::each_once(names);
}

std::vector<int> select_severities(std::vector<int> selection) {
  std::sort(selection.begin(), selection.end());
  return base::each_once(selection);
}

}  // namespace qact::corrupt
