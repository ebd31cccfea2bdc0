#include "qact/data/own.h"

#include "qact/data/file.h"
#include "qact/data/idx.h"
#include "qact/data/npy_pair.h"
#include "qact/image/fail.h"

namespace qact::data {
namespace {

using image::fail;

// A label is a folder's place among its neighbours: both parts need the same ones.
void expect_same_classes(const fs::path& train, const fs::path& test) {
  const auto expected = list_class_folders(train).classes, found = list_class_folders(test).classes;
  if (expected != found) {
    fail("folder", "expected the ", expected.size(), " classes of ", train.string(), ", got ",
         found.size(), " or others in ", test.string());
  }
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
      expect_same_classes(root / "train", root / test);
      return read_class_folders(root / test, fit);
    };
  }
  fail("data", "expected train/, train_images.npy or train-images-idx3-ubyte, got none in ",
       folder.string());
}

}  // namespace

Opened describe_own(const fs::path& folder, const Fit& fit) {
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
  return {out, folder};
}

}  // namespace qact::data
