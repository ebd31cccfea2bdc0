#include "qact/data/dataset.h"

#include <algorithm>
#include <cstdlib>

#include "qact/base/fail.h"
#include "qact/data/custom.h"
#include "qact/data/factories.h"
#include "qact/data/file.h"

namespace qact::data {
namespace {

using base::fail;

void check_id(const DatasetInfo& info, const SplitId& id) {
  if (info.clean.empty()) {
    if (id.corruption != "none" || id.severity != 0) {
      fail(info.name, "expected the corruption none at severity 0 of a clean set, got ",
           id.corruption, " at ", id.severity);
    }
    return;
  }
  const auto& known = info.corruptions;
  if (std::find(known.begin(), known.end(), id.corruption) == known.end()) {
    fail(info.name, "expected one of its corruptions, got ", id.corruption);
  }
  if (id.severity < 1 || id.severity > info.severities) {
    fail(info.name, "expected a severity of 1 to ", info.severities, ", got ", id.severity);
  }
  if (id.split == SplitName::train && info.train == 0) {
    fail(info.name, "expected the test split, got train, which it does not have");
  }
}

}  // namespace

const std::vector<DatasetInfo>& datasets() {
  static const std::vector<DatasetInfo> table = {
      mnist_small(),   mnist(),     fashion_mnist(), cifar10(),         cifar100(),
      tiny_imagenet(), cifar10_c(), cifar100_c(),    tiny_imagenet_c(), mnist_c(),
  };
  return table;
}

const DatasetInfo& find_dataset(const std::string& name) {
  std::string names;
  for (const DatasetInfo& info : datasets()) {
    if (info.name == name) return info;
    names += (names.empty() ? "" : ", ") + info.name;
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

bool is_present(const DatasetInfo& info, const fs::path& data_folder) {
  return info.embedded || fs::is_directory(data_folder / info.name);
}

void expect_size(const std::string& name, image::Size size, const Preprocessing& wanted) {
  const auto [height, width, channels] = size;
  const auto is = [](int side, int other) { return side == 0 || side == other; };
  if (is(wanted.resize, std::min(height, width)) && is(wanted.crop, height) &&
      is(wanted.crop, width)) {
    return;
  }
  fail("data", "expected image files of a custom dataset to resize or crop to ",
       wanted.crop > 0 ? wanted.crop : wanted.resize, ", got ", name, ", whose images stay ", width,
       "x", height);
}

Dataset open_dataset(const std::string& name_or_path, const fs::path& data_folder,
                     const Preprocessing& preprocessing) {
  if (name_or_path.find('/') != std::string::npos) return open_custom(name_or_path, preprocessing);
  const DatasetInfo& info = find_dataset(name_or_path);
  expect_size(info.name, info.size, preprocessing);
  const fs::path folder = data_folder / info.name;
  if (is_present(info, data_folder)) return {info, folder};
  for (const fs::path& path : {data_folder, folder}) {
    if (fs::exists(path)) expect_folder(path);
  }
  fail("data", "expected ", info.name, " in ", folder.string(),
       ", got nothing there: `qact data fetch ", info.name, "` gets it");
}

Split Dataset::read(const SplitId& id) const {
  check_id(info, id);
  Split split = info.read(folder, id);
  // A split of a custom dataset may lack images of the last classes.
  split.classes = std::max(split.classes, info.classes);
  if (split.class_names.empty()) split.class_names = info.class_names;
  return split;
}

}  // namespace qact::data
