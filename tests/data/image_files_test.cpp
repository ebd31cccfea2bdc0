#include "qact/data/image_files.h"

#include <gtest/gtest.h>

#include "qact/image/codec.h"
#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

image::Image plain_image(int height, int width, uint8_t value) {
  image::Image out({height, width, 3});
  std::fill(out.pixels.begin(), out.pixels.end(), value);
  return out;
}

TEST(ClassFolders, ReadsImagesInOrder) {
  ScratchFolder folder;
  put(folder / "b/2.png", image::encode_png(plain_image(4, 4, 20)));
  put(folder / "b/1.JPEG", image::encode_jpeg(plain_image(4, 4, 10), 100));
  put(folder / "a/z.jpg", image::encode_jpeg(plain_image(4, 4, 30), 100));
  put(folder / "a/notes.txt", "not an image");
  put(folder / "README", "nor a class");
  const Split split = read_class_folders(folder.path, {});
  EXPECT_EQ(split.labels, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(split.image(0)[0], 30);
  EXPECT_EQ(split.image(1)[0], 10);
  EXPECT_EQ(split.image(2)[0], 20);
  EXPECT_EQ(read_class_folders(folder.path, {.channels = 1}).size, (image::Size{4, 4, 1}));
}

TEST(ClassFolders, FitsImagesOfAnySize) {
  ScratchFolder folder;
  put(folder / "a/1.png", image::encode_png(plain_image(40, 60, 1)));
  put(folder / "a/2.png", image::encode_png(plain_image(33, 9, 2)));
  const Split split = read_class_folders(folder.path, {.resize = 12, .crop = 8});
  EXPECT_EQ(split.size, (image::Size{8, 8, 3}));
  EXPECT_EQ(split.count(), 2);
  const std::string message = message_of([&] { read_class_folders(folder.path, {}); });
  EXPECT_TRUE(contains(message, "9x33") && contains(message, "2.png")) << message;
}

TEST(ClassFolders, NamesAFolderItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every folder";
  ScratchFolder folder;
  fs::create_directories(folder / "set/a");
  fs::permissions(folder / "set/a", fs::perms::none);
  const std::string message = message_of([&] { read_class_folders(folder / "set", {}); });
  fs::permissions(folder / "set/a", fs::perms::owner_all);
  EXPECT_TRUE(contains(message, "cannot list " + (folder / "set/a").string())) << message;
}

TEST(ClassFolders, Refuses) {
  ScratchFolder folder;
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
