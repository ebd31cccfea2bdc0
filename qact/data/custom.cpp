#include "qact/data/custom.h"

#include "qact/base/fail.h"
#include "qact/data/file.h"
#include "qact/data/idx.h"
#include "qact/data/npy_pair.h"

namespace qact::data {
namespace {

using base::fail;

// A label is a class's place among the training part's, of which the test part may lack some.
Split read_test_folders(const fs::path& train, const fs::path& test, const Fit& fit) {
  const std::vector<std::string> classes = list_class_folders(train).classes;
  ClassFolders found = list_class_folders(test);
  const std::vector<int64_t> label_of = places_of(found.classes, classes);
  std::string unknown;
  for (size_t i = 0; i < label_of.size(); ++i) {
    if (label_of[i] < 0) unknown += (unknown.empty() ? "" : ", ") + found.classes[i];
  }
  if (!unknown.empty()) {
    fail("folder", "expected the ", classes.size(), " classes of ", train.string(), ", got ",
         unknown, " in ", test.string());
  }
  for (ImageFile& image : found.images) image.label = label_of[image.label];
  Split out = read_image_files(found.images, static_cast<int>(classes.size()), fit);
  out.class_names = classes;
  return out;
}

std::function<Split(const fs::path&, const Which&)> reader_for(const fs::path& folder,
                                                               const Fit& fit) {
  if (fs::exists(folder / "train_images.npy")) {
    return [](const fs::path& root, const Which& which) {
      const std::string part = which.part == Part::kTrain ? "train" : "test";
      return read_npy_pair(root / (part + "_images.npy"), root / (part + "_labels.npy"), 0);
    };
  }
  if (fs::exists(folder / "train-images-idx3-ubyte") ||
      fs::exists(folder / "train-images-idx3-ubyte.gz")) {
    return [](const fs::path& root, const Which& which) { return read_idx(root, which.part, 0); };
  }
  if (fs::is_directory(folder / "train")) {
    return [fit](const fs::path& root, const Which& which) {
      const std::string test =
          fs::exists(root / "val") && !fs::exists(root / "test") ? "val" : "test";
      if (which.part == Part::kTrain) return read_class_folders(root / "train", fit);
      return read_test_folders(root / "train", root / test, fit);
    };
  }
  fail("data", "expected train/, train_images.npy or train-images-idx3-ubyte, got none in ",
       folder.string());
}

}  // namespace

Opened describe_custom(const fs::path& folder, const Fit& fit) {
  expect_folder(folder);
  Dataset out;
  out.read = reader_for(folder, fit);
  const Split train = out.read(folder, {Part::kTrain}), test = out.read(folder, {Part::kTest});
  if (train.size != test.size || test.classes > train.classes) {
    fail("data", "expected train and test images of one size and the same classes, got ",
         train.size.width, "x", train.size.height, " and ", test.size.width, "x", test.size.height,
         ", ", train.classes, " and ", test.classes, " classes in ", folder.string());
  }
  out.name = name_of(folder);
  out.title = folder.string();
  out.size = train.size;
  out.classes = train.classes;
  out.train = train.count();
  out.test = test.count();
  out.normalisation = out.moments = moments_of(train);
  out.class_names = train.class_names;
  return {out, folder};
}

}  // namespace qact::data
