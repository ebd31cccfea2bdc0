// The format read back from files made here, and refused where it is bad.
#include "qact/data/idx.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

const Buffer kPixels = pattern(3 * 4 * 5);
const Buffer kImages = idx_file({3, 4, 5}, kPixels);
const Buffer kLabels = idx_file({3}, {2, 0, 1});

TEST(Idx, ReadsPlainAndGzip) {
  for (const bool packed : {false, true}) {
    ScratchFolder folder;
    const std::string ending = packed ? ".gz" : "";
    put(folder / ("t10k-images-idx3-ubyte" + ending), packed ? gzip(kImages) : kImages);
    put(folder / ("t10k-labels-idx1-ubyte" + ending), packed ? gzip(kLabels) : kLabels);
    const Split split = read_idx(folder.path, SplitName::test, 3);
    EXPECT_EQ(split.size, (image::Size{4, 5, 1}));
    EXPECT_EQ(Buffer(split.pixels.begin(), split.pixels.end()), kPixels);
    EXPECT_EQ(split.labels, (std::vector<int64_t>{2, 0, 1}));
    EXPECT_EQ(split.image(1)[0], kPixels[20]);
  }
}

TEST(Idx, RefusesWithTheFilesName) {
  Buffer flipped = gzip(kImages), wrong_magic = kImages;
  flipped[flipped.size() / 2] ^= 16;
  wrong_magic[2] = 13;
  const Buffer cut(kImages.begin(), kImages.end() - 1), packed = gzip(kImages);
  const Buffer bomb = gzip(joined(kImages, Buffer(1 << 20)));
  struct Case {
    const char* what;
    Buffer images, labels;
    bool gz;
    const char* reason;
  };
  const Case cases[] = {
      {"no images", idx_file({0, 4, 5}, {}), idx_file({0}, {}), false, "at least one image"},
      {"truncated", cut, kLabels, false, "truncated"},
      {"oversized", joined(kImages, {0}), kLabels, false, "3x4x5 values, got more"},
      {"no idx", {'P', 'K', 3, 4}, kLabels, false, "got 80 75"},
      {"a web page", {'<', 'h', 't', 'm', 'l', '>'}, kLabels, false, "got a web page"},
      {"wrong magic", wrong_magic, kLabels, false, "type 13"},
      {"empty", {}, kLabels, false, "got 0"},
      {"huge sizes", idx_file({~0u, ~0u, ~0u}, kPixels), kLabels, false, "truncated"},
      {"no images of no size", idx_file({1u << 31, 0, 0}, {}), kLabels, false, "pixels a side"},
      {"four dimensions", idx_file({1, 1, 1, 1}, {0}), kLabels, false, "got 4"},
      {"labels as images", kLabels, kLabels, false, "3 dimensions, got 1"},
      {"images as labels", kImages, kImages, false, "1 dimension, got 3"},
      {"label out of range", kImages, idx_file({3}, {2, 0, 3}), false, "got 3 at image 2"},
      {"count mismatch", kImages, idx_file({2}, {2, 0}), false, "2 labels and 3 images"},
      {"truncated gzip", Buffer(packed.begin(), packed.end() - 5), kLabels, true, "truncated"},
      {"flipped gzip", flipped, kLabels, true, "gzip"},
      {"trailing gzip", joined(packed, {1, 2}), kLabels, true, "got 2 bytes"},
      {"not gzip", kImages, kLabels, true, "corrupt"},
      {"gzip bomb", bomb, kLabels, true, "ubyte.gz: [idx] expected 3x4x5 values, got more"},
  };
  for (const Case& c : cases) {
    ScratchFolder folder;
    put(folder / (c.gz ? "train-images-idx3-ubyte.gz" : "train-images-idx3-ubyte"), c.images);
    put(folder / "train-labels-idx1-ubyte", c.labels);
    const std::string message = message_of([&] { read_idx(folder.path, SplitName::train, 3); });
    EXPECT_TRUE(contains(message, c.reason)) << c.what << ": " << message;
    EXPECT_TRUE(contains(message, folder.path.string())) << c.what << ": " << message;
  }
}

TEST(Idx, NamesWhatIsMissing) {
  ScratchFolder folder;
  EXPECT_TRUE(contains(message_of([&] { read_idx(folder.path, SplitName::train, 3); }),
                       "train-images-idx3-ubyte"));
  fs::create_directories(folder / "train-images-idx3-ubyte");
  EXPECT_TRUE(contains(message_of([&] { read_idx(folder.path, SplitName::train, 3); }),
                       "expected a regular file, got a folder"));
}

}  // namespace
}  // namespace qact::data
