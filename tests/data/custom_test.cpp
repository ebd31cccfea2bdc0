// Folders that are recognised as custom datasets, and their classes.
#include "qact/data/custom.h"

#include <gtest/gtest.h>

#include "qact/image/png.h"
#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(CustomDataset, IsRecognisedByItsFiles) {
  ScratchFolder folder;
  const Buffer images = npy_file("|u1", {4, 2, 2, 1},
                                 {0, 0, 0, 0, 255, 255, 255, 255,  //
                                  0, 0, 0, 0, 255, 255, 255, 255});
  for (const std::string part : {"train", "test"}) {
    put(folder / ("npy/" + part + "_images.npy"), images);
    put(folder / ("npy/" + part + "_labels.npy"), npy_file("|u1", {4}, {0, 1, 2, 0}));
    for (const std::string name : {"cat", "dog"}) {
      put(folder / ("images/" + part + "/" + name + "/1.png"),
          image::encode_png(image::Image({5, 5, 3})));
    }
  }
  put(folder / "idx/train-images-idx3-ubyte", idx_file({1, 2, 2}, pattern(4)));
  put(folder / "idx/train-labels-idx1-ubyte", idx_file({1}, {3}));
  put(folder / "idx/t10k-images-idx3-ubyte", idx_file({1, 2, 2}, pattern(4)));
  put(folder / "idx/t10k-labels-idx1-ubyte", idx_file({1}, {1}));

  const DatasetInfo npy = open_dataset((folder / "npy").string(), "").info;
  EXPECT_EQ(npy.name, "npy");
  EXPECT_EQ(npy.classes, 3);
  EXPECT_DOUBLE_EQ(npy.normalisation.mean[0], 0.5);
  EXPECT_DOUBLE_EQ(npy.normalisation.std[0], 0.5);
  EXPECT_EQ(open_dataset((folder / "idx").string(), "").info.classes, 4);
  const Dataset files = open_dataset((folder / "images").string(), "", {.resize = 4, .crop = 3});
  EXPECT_EQ(files.info.size, (image::Size{3, 3, 3}));

  // Arrays are taken as they are, or refused.
  for (const char* name : {"npy", "idx"}) {
    const std::string path = (folder / name).string();
    EXPECT_EQ(open_dataset(path, "", {.resize = 2, .crop = 2}).info.size.width, 2);
    for (const Preprocessing& wanted : {Preprocessing{.resize = 3, .crop = 3},
                                        Preprocessing{.resize = 3}, Preprocessing{.crop = 1}}) {
      EXPECT_TRUE(contains(message_of([&] { open_dataset(path, "", wanted); }),
                           ", got " + path + ", whose images stay 2x2"));
    }
  }
  EXPECT_EQ(message_of([&] { open_dataset("mnist-small", "", {.resize = 32, .crop = 32}); }),
            "[data] expected image files of a custom dataset to resize or crop to 32, got "
            "mnist-small, whose images stay 28x28");

  fs::rename(folder / "images/test/cat", folder / "images/test/cow");
  EXPECT_TRUE(contains(message_of([&] { files.read({SplitName::test}); }), "got cow in"));
  EXPECT_TRUE(contains(message_of([&] { open_dataset(folder.path.string(), ""); }), "got none in"));
  EXPECT_TRUE(
      contains(message_of([&] { open_dataset((folder / "npy/train_images.npy").string(), ""); }),
               "got a file"));
}

// An image per class.
void put_images(const fs::path& folder, const std::string& split,
                const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    image::Image image({3, 3, 3});
    std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(40 * i));
    put(folder / split / classes[i] / "1.png", image::encode_png(image));
  }
}

TEST(CustomDataset, HasTheClassNamesOfItsFolders) {
  ScratchFolder folder;
  put_images(folder.path, "train", {"cat", "cow", "dog"});
  put_images(folder.path, "test", {"dog", "cat"});
  const Dataset opened = open_dataset(folder.path.string() + "/", "");
  const std::vector<std::string> names = {"cat", "cow", "dog"};
  EXPECT_EQ(opened.info.class_names, names);
  EXPECT_EQ(opened.read({SplitName::train}).class_names, names);
  // A class that the test split lacks does not move the others.
  const Split test = opened.read({SplitName::test});
  EXPECT_EQ(test.class_names, names);
  EXPECT_EQ(test.classes, 3);
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 2}));

  fs::rename(folder / "test/cat", folder / "test/fox");
  EXPECT_EQ(message_of([&] { opened.read({SplitName::test}); }),
            "[folder] expected the 3 classes of " + (folder / "train").string() + ", got fox in " +
                (folder / "test").string());
}

TEST(CustomDataset, HasImagesOfEachClassToTrain) {
  ScratchFolder folder;
  put_images(folder.path, "train", {"cat", "dog"});
  put_images(folder.path, "test", {"cat", "dog"});
  for (const char* hidden : {"train/.ipynb_checkpoints", "test/.ipynb_checkpoints"}) {
    put(folder / hidden / "1-checkpoint.png", image::encode_png(image::Image({3, 3, 3})));
  }
  put(folder / "train/cat/._1.png", "what macOS leaves beside 1.png");
  const Dataset opened = open_dataset(folder.path.string(), "");
  EXPECT_EQ(opened.info.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(opened.info.train, 2);
  EXPECT_EQ(opened.info.test, 2);

  fs::create_directories(folder / "test/emu");
  fs::create_directories(folder / "train/emu");
  EXPECT_EQ(message_of([&] { open_dataset(folder.path.string(), ""); }),
            "[folder] expected PNG or JPEG files in the folder of each class, got none in " +
                (folder / "train/emu").string());
  put_images(folder.path, "train", {"cat", "dog", "emu"});
  EXPECT_EQ(open_dataset(folder.path.string(), "").info.classes, 3);
}

}  // namespace
}  // namespace qact::data
