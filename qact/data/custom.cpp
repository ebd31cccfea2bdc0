#include "qact/data/custom.h"

#include "qact/base/fail.h"
#include "qact/data/file.h"
#include "qact/data/idx.h"
#include "qact/data/npy_pair.h"

namespace qact::data {
namespace {

using base::fail;

// A class without images would be one of the network's outputs, and never right.
Split read_training_folders(const fs::path& train, const Preprocessing& preprocessing) {
  const ClassFolders found = list_class_folders(train);
  std::vector<bool> has_images(found.classes.size());
  for (const ImageFile& image : found.images) has_images[image.label] = true;
  for (size_t i = 0; i < has_images.size(); ++i) {
    if (has_images[i]) continue;
    fail("folder", "expected PNG or JPEG files in the folder of each class, got none in ",
         (train / found.classes[i]).string());
  }
  return read_class_folders(train, preprocessing);
}

// Labels are indices of the training split's classes; the test split may lack some of them.
Split read_test_folders(const fs::path& train, const fs::path& test,
                        const Preprocessing& preprocessing) {
  const std::vector<std::string> classes = list_class_folders(train).classes;
  ClassFolders found = list_class_folders(test);
  const std::vector<int64_t> label_of = indices_of(found.classes, classes);
  std::string unknown;
  for (size_t i = 0; i < label_of.size(); ++i) {
    if (label_of[i] < 0) unknown += (unknown.empty() ? "" : ", ") + found.classes[i];
  }
  if (!unknown.empty()) {
    fail("folder", "expected the ", classes.size(), " classes of ", train.string(), ", got ",
         unknown, " in ", test.string());
  }
  for (ImageFile& image : found.images) image.label = label_of[image.label];
  Split out = read_image_files(found.images, static_cast<int>(classes.size()), preprocessing);
  out.class_names = classes;
  return out;
}

// Arrays stay as they are.
Split of_size(Split split, const fs::path& folder, const Preprocessing& preprocessing) {
  expect_size(folder.string(), split.size, preprocessing);
  return split;
}

std::function<Split(const fs::path&, const SplitId&)> reader_for(
    const fs::path& folder, const Preprocessing& preprocessing) {
  if (fs::exists(folder / "train_images.npy")) {
    return [preprocessing](const fs::path& root, const SplitId& id) {
      const std::string name = to_string(id.split);
      return of_size(read_npy_pair(root / (name + "_images.npy"), root / (name + "_labels.npy"), 0),
                     root, preprocessing);
    };
  }
  if (fs::exists(folder / "train-images-idx3-ubyte") ||
      fs::exists(folder / "train-images-idx3-ubyte.gz")) {
    return [preprocessing](const fs::path& root, const SplitId& id) {
      return of_size(read_idx(root, id.split, 0), root, preprocessing);
    };
  }
  if (fs::is_directory(folder / "train")) {
    return [preprocessing](const fs::path& root, const SplitId& id) {
      const std::string test =
          fs::exists(root / "val") && !fs::exists(root / "test") ? "val" : "test";
      if (id.split == SplitName::train) return read_training_folders(root / "train", preprocessing);
      return read_test_folders(root / "train", root / test, preprocessing);
    };
  }
  fail("data", "expected train/, train_images.npy or train-images-idx3-ubyte, got none in ",
       folder.string());
}

}  // namespace

Dataset open_custom(const fs::path& folder, const Preprocessing& preprocessing) {
  expect_folder(folder);
  DatasetInfo out;
  out.read = reader_for(folder, preprocessing);
  const Split train = out.read(folder, {SplitName::train}),
              test = out.read(folder, {SplitName::test});
  if (train.size != test.size || test.classes > train.classes) {
    fail("data", "expected train and test images of one size and the same classes, got ",
         train.size.width, "x", train.size.height, " and ", test.size.width, "x", test.size.height,
         ", ", train.classes, " and ", test.classes, " classes in ", folder.string());
  }
  out.name = folder_name(folder);
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
