// The table, the embedded dataset, and official layouts in miniature.
#include "qact/data/dataset.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "qact/data/check.h"
#include "qact/data/fetch.h"
#include "qact/image/jpeg.h"
#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Table, NamesAreUniqueAndConstantsComplete) {
  std::set<std::string> names;
  for (const DatasetInfo& dataset : datasets()) {
    EXPECT_TRUE(names.insert(dataset.name).second) << dataset.name;
    EXPECT_EQ(dataset.normalisation.mean.size(), static_cast<size_t>(dataset.size.channels));
    EXPECT_EQ(dataset.normalisation.std.size(), static_cast<size_t>(dataset.size.channels));
    EXPECT_TRUE(dataset.read) << dataset.name;
    EXPECT_NE(dataset.embedded, !dataset.sources.empty()) << dataset.name;
    for (const auto& [balance, count] : {std::pair{dataset.train_balance, dataset.train},
                                         std::pair{dataset.test_balance, dataset.test}}) {
      if (balance.empty()) continue;
      EXPECT_EQ(std::accumulate(balance.begin(), balance.end(), int64_t{0}), count);
    }
  }
  EXPECT_TRUE(contains(message_of([] { find_dataset("mnits"); }), "cifar10"));
}

TEST(MnistSmall, IsBalancedAndReal) {
  const Dataset opened = open_dataset("mnist-small", "/nowhere");
  for (const SplitName name : {SplitName::train, SplitName::test}) {
    const Split split = opened.read({name});
    ASSERT_EQ(split.count(), name == SplitName::train ? 12000 : 2000);
    EXPECT_EQ(split.size, (image::Size{28, 28, 1}));
    std::vector<int64_t> counts(10);
    for (const int64_t label : split.labels) ++counts[label];
    for (const int64_t count : counts) EXPECT_EQ(count, split.count() / 10);
    const Moments moments = moments_of(split);
    EXPECT_NEAR(moments.mean[0], 0.1313, 0.002);
    EXPECT_NEAR(moments.std[0], 0.3086, 0.002);
  }
}

TEST(OpenDataset, PutsNothingInThePlaceOfWhatWasNotFetched) {
  ScratchFolder folder;
  for (const std::string name : {"mnist", "cifar10"}) {
    EXPECT_EQ(message_of([&] { open_dataset(name, folder.path); }),
              "[data] expected " + name + " in " + (folder / name).string() +
                  ", got nothing there: `qact data fetch " + name + "` gets it");
  }
  fs::create_directories(folder / "mnist");
  EXPECT_EQ(open_dataset("mnist", folder.path).info.name, "mnist");
}

TEST(OpenDataset, TakesTheFolderFromTheOptionThenTheEnvironment) {
  ::setenv("QACT_DATA", "/from/environment", 1);
  EXPECT_EQ(data_folder("/from/option"), "/from/option");
  EXPECT_EQ(data_folder(), "/from/environment");
  ::unsetenv("QACT_DATA");
  EXPECT_TRUE(contains(data_folder().string(), ".cache/qact"));
}

TEST(Cifar, IsReadWhereItsArchiveUnpacksToo) {
  const Buffer record = joined({3}, pattern(3072));
  for (const std::string inner : {"", "cifar-10-batches-bin/"}) {
    ScratchFolder folder;
    for (int i = 1; i <= 5; ++i) {
      put(folder / ("cifar10/" + inner + "data_batch_" + std::to_string(i) + ".bin"), record);
    }
    put(folder / ("cifar10/" + inner + "test_batch.bin"), record);
    const Dataset opened = open_dataset("cifar10", folder.path);
    EXPECT_EQ(opened.read({SplitName::train}).count(), 5);
    EXPECT_EQ(opened.read({SplitName::test}).count(), 1);
    EXPECT_TRUE(
        contains(message_of([&] { opened.read({SplitName::test, "fog", 1}); }), "clean set"));
  }
}

TEST(CifarC, SlicesTheSeverities) {
  ScratchFolder folder;
  const Buffer pixels = pattern(10 * 3072), labels = {4, 2, 4, 2, 4, 2, 4, 2, 4, 2};
  put(folder / "cifar10-c/fog.npy", npy_file("|u1", {10, 32, 32, 3}, pixels));
  put(folder / "cifar10-c/labels.npy", npy_file("|u1", {10}, labels));
  const Dataset opened = open_dataset("cifar10-c", folder.path);
  for (int severity = 1; severity <= 5; ++severity) {
    const Split split = opened.read({SplitName::test, "fog", severity});
    EXPECT_EQ(split.labels, (std::vector<int64_t>{4, 2}));
    EXPECT_TRUE(std::equal(split.pixels.begin(), split.pixels.end(),
                           pixels.begin() + (severity - 1) * 2 * 3072));
  }
  const auto message = [&](const SplitId& id) { return message_of([&] { opened.read(id); }); };
  EXPECT_TRUE(contains(message({SplitName::test, "fog", 6}), "1 to 5, got 6"));
  EXPECT_TRUE(contains(message({SplitName::test, "rain", 1}), "got rain"));
  EXPECT_TRUE(contains(message({SplitName::train, "fog", 1}), "test split"));
  EXPECT_TRUE(contains(message({SplitName::test, "snow", 1}), "snow.npy"));
}

TEST(MnistC, ReadsBothSplits) {
  ScratchFolder folder;
  for (const std::string part : {"train", "test"}) {
    put(folder / ("mnist-c/zigzag/" + part + "_images.npy"),
        npy_file("|u1", {2, 28, 28, 1}, pattern(2 * 784)));
    put(folder / ("mnist-c/zigzag/" + part + "_labels.npy"),
        npy_file("<i8", {2}, joined(Buffer(8), Buffer(8))));
  }
  const Dataset opened = open_dataset("mnist-c", folder.path);
  EXPECT_EQ(opened.read({SplitName::train, "zigzag", 1}).count(), 2);
  EXPECT_EQ(opened.read({SplitName::test, "zigzag", 1}).size, (image::Size{28, 28, 1}));
  EXPECT_TRUE(contains(message_of([&] { check(opened); }), "shot_noise/train_images.npy"));
}

TEST(OpenDataset, NamesAFileInAFoldersPlace) {
  ScratchFolder folder;
  put(folder / "cifar10", "");
  const auto message = [&](const fs::path& data) {
    return message_of([&] { open_dataset("cifar10", data); });
  };
  EXPECT_EQ(message(folder.path),
            "[file] expected a folder, got a file: " + (folder / "cifar10").string());
  EXPECT_EQ(message(folder / "cifar10"),
            "[file] expected a folder, got a file: " + (folder / "cifar10").string());
  EXPECT_TRUE(contains(message(folder / "nothing"), "got nothing there"));
  EXPECT_TRUE(contains(message_of([&] { fetch(find_dataset("cifar10"), folder / "cifar10", {}); }),
                       "got a file"));
}

Buffer tiny_image(uint8_t value) {
  image::Image image({64, 64, 3});
  std::fill(image.pixels.begin(), image.pixels.end(), value);
  return image::encode_jpeg(image, 95);
}

std::string class_name(int i) { return std::to_string(10000 + i).insert(0, 1, 'n'); }

TEST(TinyImagenet, ReadsTheAnnotations) {
  ScratchFolder folder;
  const fs::path root = folder / "tiny-imagenet/tiny-imagenet-200";
  for (int i = 0; i < 200; ++i) {
    const std::string name = class_name(i);
    put(root / "train" / name / "images" / (name + "_0.JPEG"), tiny_image(i));
  }
  std::string list;
  for (const int i : {7, 150}) {
    const std::string name = "val_" + std::to_string(i) + ".JPEG";
    put(root / "val/images" / name, tiny_image(i));
    list += name + "\t" + class_name(i) + "\t0\t32\t44\t62\n";
  }
  put(root / "val/val_annotations.txt", list);
  const Dataset opened = open_dataset("tiny-imagenet", folder.path);
  const Split train = opened.read({SplitName::train});
  ASSERT_EQ(train.count(), 200);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(train.labels[i], i);
    ASSERT_EQ(train.image(i)[0], i);
  }
  EXPECT_EQ(opened.read({SplitName::test}).labels, (std::vector<int64_t>{7, 150}));

  put(root / "val/val_annotations.txt", list + "x.JPEG\tn99999\t0\n");
  EXPECT_TRUE(contains(message_of([&] { opened.read({SplitName::test}); }), "line 3"));
  fs::remove_all(root / "train" / class_name(9));
  EXPECT_TRUE(contains(message_of([&] { opened.read({SplitName::train}); }), "got 199"));
}

TEST(TinyImagenetC, ReadsFolders) {
  ScratchFolder folder;
  for (int i = 0; i < 200; ++i) {
    put(folder.path / "tiny-imagenet-c/fog/2" / class_name(i) / "0.JPEG", tiny_image(i));
  }
  const Dataset opened = open_dataset("tiny-imagenet-c", folder.path);
  EXPECT_EQ(opened.read({SplitName::test, "fog", 2}).count(), 200);
  EXPECT_TRUE(contains(message_of([&] { opened.read({SplitName::test, "fog", 1}); }), "fog/1"));
}

TEST(Table, ClassNamesAreUnique) {
  for (const DatasetInfo& dataset : datasets()) {
    if (dataset.class_names.empty()) continue;
    EXPECT_EQ(static_cast<int>(dataset.class_names.size()), dataset.classes) << dataset.name;
    const std::set<std::string> unique(dataset.class_names.begin(), dataset.class_names.end());
    EXPECT_EQ(unique.size(), dataset.class_names.size()) << dataset.name;
  }
  const Split digits = open_dataset("mnist-small", "").read({SplitName::test});
  ASSERT_EQ(digits.class_names.size(), 10u);
  EXPECT_EQ(digits.class_names[7], "7");
}

}  // namespace
}  // namespace qact::data
