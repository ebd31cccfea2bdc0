#include "qact/corrupt/choose.h"

#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {
namespace {

bool is_digit(image::Size size) { return size == image::Size{28, 28, 1}; }

bool belongs(const Corruption& corruption, const std::string& group) {
  if (group == "benchmark") return corruption.benchmark;
  if (group == "extra") return corruption.extra;
  return group == "mnist" && corruption.mnist_severity > 0;
}

}  // namespace

std::vector<std::string> choose(const std::vector<std::string>& wanted, image::Size size) {
  if (wanted.empty()) return choose({is_digit(size) ? "mnist" : "benchmark"}, size);
  std::vector<std::string> names;
  for (const std::string& name : wanted) {
    if (name != "benchmark" && name != "extra" && name != "mnist") {
      names.emplace_back(find(name).name);
      continue;
    }
    for (const Corruption& corruption : corruptions()) {
      if (belongs(corruption, name)) names.emplace_back(corruption.name);
    }
  }
  return names;
}

}  // namespace qact::corrupt
