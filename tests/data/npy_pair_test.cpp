#include "qact/data/npy_pair.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(NpyPair, ReadsLabelsOfEveryIntegerType) {
  ScratchFolder folder;
  put(folder / "x.npy", npy_file("|u1", {2, 3, 4, 3}, pattern(72)));
  for (const std::string dtype : {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"}) {
    const int width = dtype[2] - '0';
    Buffer labels(2 * width);
    labels[0] = 5;
    labels[width] = 1;
    put(folder / "y.npy", npy_file(dtype, {2}, labels));
    const Split split = read_npy_pair(folder / "x.npy", folder / "y.npy", 0);
    EXPECT_EQ(split.labels, (std::vector<int64_t>{5, 1})) << dtype;
    EXPECT_EQ(split.classes, 6);
    EXPECT_EQ(split.size, (image::Size{3, 4, 3}));
  }
}

TEST(NpyPair, Refuses) {
  const Buffer images = npy_file("|u1", {2, 3, 4}, pattern(24));
  const Buffer labels = npy_file("|u1", {2}, {1, 0});
  struct Case {
    Buffer images, labels;
    const char *file, *reason;
  };
  const Case cases[] = {
      {npy_file("|u1", {2, 3, 4}, pattern(23)), labels, "x.npy", "got 23 bytes"},
      {npy_file("|u1", {2, 3, 4}, pattern(25)), labels, "x.npy", "got 25 bytes"},
      {npy_file("<f4", {2, 3, 1}, pattern(24)), labels, "x.npy", "uint8"},
      {npy_file("|u1", {2, 3, 1, 4}, pattern(24)), labels, "x.npy", "the last of 4"},
      {npy_file("|u1", {24}, pattern(24)), labels, "x.npy", "1 dimensions"},
      {npy_file("|u1", {2, 0, 0}, {}), labels, "x.npy", "pixels a side"},
      {images, npy_file("<f4", {2}, pattern(8)), "y.npy", "integer type"},
      {images, npy_file("|u1", {2, 1}, {1, 0}), "y.npy", "1 dimension"},
      {images, npy_file("|u1", {3}, {1, 0, 0}), "y.npy", "3 labels and 2 images"},
      {images, npy_file("|u1", {2}, {1, 9}), "y.npy", "got 9 at image 1"},
      {images, npy_file("|i1", {2}, {1, 0xff}), "y.npy", "got -1 at image 1"},
  };
  for (const Case& c : cases) {
    ScratchFolder folder;
    put(folder / "x.npy", c.images);
    put(folder / "y.npy", c.labels);
    const std::string message =
        message_of([&] { read_npy_pair(folder / "x.npy", folder / "y.npy", 5); });
    EXPECT_TRUE(contains(message, c.reason) && contains(message, c.file)) << message;
  }
}

TEST(NpyPair, RefusesNoImages) {
  ScratchFolder folder;
  put(folder / "images.npy", npy_file("|u1", {0, 4, 5}, {}));
  put(folder / "labels.npy", npy_file("|u1", {0}, {}));
  EXPECT_EQ(message_of([&] { read_npy_pair(folder / "images.npy", folder / "labels.npy", 0); }),
            (folder / "images.npy").string() + ": [npy] expected at least one image, got none");
}

}  // namespace
}  // namespace qact::data
