// Each format read back from files made here, and refused where it is bad.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "qact/data/cifar_binary.h"
#include "qact/data/dataset.h"
#include "qact/data/idx.h"
#include "qact/data/image_files.h"
#include "qact/data/npy_pair.h"
#include "tests/data/folder.h"

namespace qact::data {
namespace {

using namespace test;

const Buffer kPixels = pattern(3 * 4 * 5);
const Buffer kImages = idx_file({3, 4, 5}, kPixels);
const Buffer kLabels = idx_file({3}, {2, 0, 1});

TEST(Idx, ReadsPlainAndGzip) {
  for (const bool packed : {false, true}) {
    TemporaryFolder folder;
    const std::string ending = packed ? ".gz" : "";
    put(folder / ("t10k-images-idx3-ubyte" + ending), packed ? gzip(kImages) : kImages);
    put(folder / ("t10k-labels-idx1-ubyte" + ending), packed ? gzip(kLabels) : kLabels);
    const Split split = read_idx(folder.path(), Part::kTest, 3);
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
    TemporaryFolder folder;
    put(folder / (c.gz ? "train-images-idx3-ubyte.gz" : "train-images-idx3-ubyte"), c.images);
    put(folder / "train-labels-idx1-ubyte", c.labels);
    const std::string message = message_of([&] { read_idx(folder.path(), Part::kTrain, 3); });
    EXPECT_TRUE(contains(message, c.reason)) << c.what << ": " << message;
    EXPECT_TRUE(contains(message, folder.path().string())) << c.what << ": " << message;
  }
}

TEST(Idx, NamesWhatIsMissing) {
  TemporaryFolder folder;
  EXPECT_TRUE(contains(message_of([&] { read_idx(folder.path(), Part::kTrain, 3); }),
                       "train-images-idx3-ubyte"));
  fs::create_directories(folder / "train-images-idx3-ubyte");
  EXPECT_TRUE(contains(message_of([&] { read_idx(folder.path(), Part::kTrain, 3); }),
                       "expected a regular file, got a folder"));
}

TEST(Cifar, TurnsPlanesToPixels) {
  for (const int label_bytes : {1, 2}) {
    TemporaryFolder folder;
    const Buffer planes[] = {pattern(3072, 1), pattern(3072, 2)};
    Buffer file;
    for (int i = 0; i < 2; ++i) {
      if (label_bytes == 2) file.push_back(200);  // the coarse class, unused
      file.push_back(static_cast<uint8_t>(7 + i));
      file = joined(file, planes[i]);
    }
    put(folder / "a.bin", file);
    const Split split = read_cifar({folder / "a.bin", folder / "a.bin"},
                                   {.label_bytes = label_bytes, .classes = 9});
    EXPECT_EQ(split.labels, (std::vector<int64_t>{7, 8, 7, 8}));
    for (int i = 0; i < 4; ++i) {
      for (int p = 0; p < 1024; ++p) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(split.image(i)[3 * p + c], planes[i % 2][1024 * c + p]);
        }
      }
    }
    if (label_bytes == 1) {
      EXPECT_EQ(make_cifar(split.slice(0, 2)), file);
    }
  }
}

TEST(Cifar, Refuses) {
  TemporaryFolder folder;
  const Buffer record = joined({3}, pattern(3072));
  const std::pair<Buffer, const char*> cases[] = {
      {Buffer(record.begin(), record.end() - 1), "got 3072 bytes"},
      {joined(record, {1}), "got 3074 bytes"},
      {{}, "got 0 bytes"},
      {joined({10}, pattern(3072)), "got 10 at record 0"},
  };
  for (const auto& [bytes, reason] : cases) {
    put(folder / "bad.bin", bytes);
    const std::string message = message_of([&] { read_cifar({folder / "bad.bin"}, {}); });
    EXPECT_TRUE(contains(message, reason) && contains(message, "bad.bin")) << message;
  }
}

TEST(NpyPair, ReadsLabelsOfEveryIntegerType) {
  TemporaryFolder folder;
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
    TemporaryFolder folder;
    put(folder / "x.npy", c.images);
    put(folder / "y.npy", c.labels);
    const std::string message =
        message_of([&] { read_npy_pair(folder / "x.npy", folder / "y.npy", 5); });
    EXPECT_TRUE(contains(message, c.reason) && contains(message, c.file)) << message;
  }
}

image::Image plain_image(int height, int width, uint8_t value) {
  image::Image out({height, width, 3});
  std::fill(out.pixels.begin(), out.pixels.end(), value);
  return out;
}

// Opened to be read, a FIFO would wait for a writer.
TEST(File, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "images.npy").c_str(), 0600), 0);
  const std::string refusal = "[file] expected a regular file, got ";
  const auto message = [](const fs::path& path) { return message_of([&] { map_file(path); }); };
  EXPECT_EQ(message(folder / "images.npy"),
            refusal + "a FIFO: " + (folder / "images.npy").string());
  EXPECT_EQ(message(folder.path()), refusal + "a folder: " + folder.path().string());
  EXPECT_EQ(message("/dev/null"), refusal + "a device: /dev/null");
  EXPECT_TRUE(contains(message(folder / "none"), "cannot open"));
  EXPECT_FALSE(is_web_page(folder / "images.npy"));  // which every error asks for
}

TEST(NpyPair, RefusesNoImages) {
  TemporaryFolder folder;
  put(folder / "images.npy", npy_file("|u1", {0, 4, 5}, {}));
  put(folder / "labels.npy", npy_file("|u1", {0}, {}));
  EXPECT_EQ(message_of([&] { read_npy_pair(folder / "images.npy", folder / "labels.npy", 0); }),
            (folder / "images.npy").string() + ": [npy] expected at least one image, got none");
}

TEST(ClassFolders, ReadsImagesInOrder) {
  TemporaryFolder folder;
  put(folder / "b/2.png", image::encode_png(plain_image(4, 4, 20)));
  put(folder / "b/1.JPEG", image::encode_jpeg(plain_image(4, 4, 10), 100));
  put(folder / "a/z.jpg", image::encode_jpeg(plain_image(4, 4, 30), 100));
  put(folder / "a/notes.txt", "not an image");
  put(folder / "README", "nor a class");
  const Split split = read_class_folders(folder.path(), {});
  EXPECT_EQ(split.labels, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(split.image(0)[0], 30);
  EXPECT_EQ(split.image(1)[0], 10);
  EXPECT_EQ(split.image(2)[0], 20);
  EXPECT_EQ(read_class_folders(folder.path(), {.channels = 1}).size, (image::Size{4, 4, 1}));
}

TEST(ClassFolders, FitsImagesOfAnySize) {
  TemporaryFolder folder;
  put(folder / "a/1.png", image::encode_png(plain_image(40, 60, 1)));
  put(folder / "a/2.png", image::encode_png(plain_image(33, 9, 2)));
  const Split split = read_class_folders(folder.path(), {.resize = 12, .crop = 8});
  EXPECT_EQ(split.size, (image::Size{8, 8, 3}));
  EXPECT_EQ(split.count(), 2);
  const std::string message = message_of([&] { read_class_folders(folder.path(), {}); });
  EXPECT_TRUE(contains(message, "9x33") && contains(message, "2.png")) << message;
}

TEST(ClassFolders, NamesAFolderItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every folder";
  TemporaryFolder folder;
  fs::create_directories(folder / "set/a");
  fs::permissions(folder / "set/a", fs::perms::none);
  const std::string message = message_of([&] { read_class_folders(folder / "set", {}); });
  fs::permissions(folder / "set/a", fs::perms::owner_all);
  EXPECT_TRUE(contains(message, "cannot list " + (folder / "set/a").string())) << message;
}

TEST(ClassFolders, Refuses) {
  TemporaryFolder folder;
  put(folder / "file", "");
  put(folder / "set/a/bad.png", "<html>");
  fs::create_directories(folder / "empty/a");
  const std::pair<std::string, const char*> cases[] = {
      {"file", "expected a folder, got a file"},
      {"nothing", "got nothing at"},
      {"set", "bad.png"},
      {"empty", "expected a folder per class"},
  };
  for (const auto& [name, reason] : cases) {
    const std::string message =
        message_of([&, &name = name] { read_class_folders(folder / name, {}); });
    EXPECT_TRUE(contains(message, reason) && contains(message, (folder / name).string()))
        << message;
  }
}

}  // namespace
}  // namespace qact::data
