#include "qact/corrupt/write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qact/corrupt/target_lock.h"
#include "qact/data/dataset.h"
#include "qact/data/image_files.h"
#include "qact/data/npy_pair.h"
#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"
#include "tests/corrupt/test_images.h"

namespace qact::corrupt {
namespace {

namespace fs = std::filesystem;

class Write : public ::testing::Test {
 protected:
  void SetUp() override {
    use({32, 32, 3});
    options_.folder = folder_;
    options_.corruptions = {"fog", "contrast"};
    options_.frost = std::make_shared<const FrostTextures>(FrostTextures::procedural());
  }

  void use(image::Size size) {
    pixels_ = test::test_images(kCount, size.height, size.channels);
    images_ = {.name = "made", .pixels = pixels_, .size = size, .labels = {}, .class_names = {}};
    for (int i = 0; i < kCount; ++i) images_.labels.push_back(i % 3);
  }

  Written write(const base::Progress& progress = {}) {
    return write_corrupted(images_, options_, progress);
  }

  std::vector<uint8_t> expected(const std::string& name, int severity) const {
    std::vector<uint8_t> out(pixels_.size());
    Corruptor(name, severity, images_.size, options_.seed, options_.frost)
        .apply(pixels_.data(), 0, kCount, out.data(), 1);
    return out;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string failure(const base::Progress& progress = {}) {
    return message_of([&] { write(progress); });
  }

  static constexpr int kCount = 7;
  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path / "set";
  std::vector<uint8_t> pixels_;
  CleanImages images_;
  WriteOptions options_;
};

TEST_F(Write, ArraysHoldAllSeverities) {
  const Written written = write();
  EXPECT_EQ(written.made, 2);
  EXPECT_EQ(files(),
            (std::vector<std::string>{"contrast.npy", "corrupted.json", "fog.npy", "labels.npy"}));
  const data::Split all = data::read_npy_pair(folder_ / "fog.npy", folder_ / "labels.npy", 3);
  ASSERT_EQ(all.count(), 5 * kCount);
  EXPECT_EQ(all.size, images_.size);
  for (int severity = 1; severity <= 5; ++severity) {
    const data::Split one = all.slice((severity - 1) * kCount, kCount);
    EXPECT_EQ(std::vector<uint8_t>(one.pixels.begin(), one.pixels.end()),
              expected("fog", severity));
    EXPECT_EQ(one.labels, images_.labels);
  }
}

TEST_F(Write, ReadersTakeSeveritiesInAscendingOrder) {
  options_.corruptions = {"contrast", "fog", "contrast"};
  options_.severities = {5, 3, 4, 2, 1, 3};
  EXPECT_EQ(write().made, 2);
  const data::Split all = data::read_npy_pair(folder_ / "fog.npy", folder_ / "labels.npy", 3);
  ASSERT_EQ(all.count(), 5 * kCount);
  for (int severity = 1; severity <= 5; ++severity) {
    const data::Split one = all.slice((severity - 1) * kCount, kCount);
    EXPECT_EQ(std::vector<uint8_t>(one.pixels.begin(), one.pixels.end()),
              expected("fog", severity));
  }
  options_.severities = {1, 2, 3, 3, 2};
  EXPECT_EQ(write().made, 6);
  EXPECT_TRUE(fs::exists(folder_ / "3" / "fog.npy"));
}

TEST_F(Write, SomeSeveritiesGetFoldersOfTheirOwn) {
  options_.severities = {4};
  write();
  const data::Split one =
      data::read_npy_pair(folder_ / "4" / "fog.npy", folder_ / "4" / "labels.npy", 3);
  EXPECT_EQ(std::vector<uint8_t>(one.pixels.begin(), one.pixels.end()), expected("fog", 4));
}

TEST_F(Write, FoldersOfImages) {
  use({64, 64, 3});
  options_.layout = Layout::folders;
  options_.severities = {2, 5};
  images_.class_names = {"a", "b", "c"};
  EXPECT_EQ(write().made, 4);
  const data::Split split = data::read_class_folders(folder_ / "contrast" / "5", {});
  EXPECT_EQ(split.count(), kCount);
  EXPECT_EQ(split.size, images_.size);
  EXPECT_TRUE(fs::exists(folder_ / "fog" / "2" / "b" / "00004.JPEG"));
  EXPECT_EQ(write().kept, 4);
}

TEST_F(Write, FoldersOfMnist) {
  use({28, 28, 1});
  options_.layout = Layout::mnist_c;
  options_.corruptions = {"shear"};
  write();
  const data::Split one = data::read_npy_pair(folder_ / "shear" / "test_images.npy",
                                              folder_ / "shear" / "test_labels.npy", 3);
  EXPECT_EQ(std::vector<uint8_t>(one.pixels.begin(), one.pixels.end()), expected("shear", 2));
  EXPECT_TRUE(fs::exists(folder_ / "identity" / "test_images.npy"));
  options_.corruptions = {"snow"};
  EXPECT_EQ(failure(), "[corrupt] expected one of MNIST-C's corruptions for its layout, got snow");
}

TEST_F(Write, ResumesWhereItWasStopped) {
  int calls = 0;
  EXPECT_EQ(failure([&](double) { return ++calls < 7; }),
            "[corrupt] stopped; run the same command again to go on");
  EXPECT_EQ(files(), (std::vector<std::string>{"corrupted.json", "fog.npy", "labels.npy"}));
  double last = 0;
  const Written written = write([&](double share) {
    EXPECT_GE(share, last);
    last = share;
    return true;
  });
  EXPECT_EQ(written.made, 1);
  EXPECT_EQ(written.kept, 1);
  EXPECT_EQ(last, 1);
  options_.seed = 3;
  EXPECT_EQ(write().made, 2);
}

TEST_F(Write, MakesDamagedFilesAgain) {
  write();
  const fs::path fog = folder_ / "fog.npy";
  const auto size = fs::file_size(fog);
  fs::resize_file(fog, size - 100);
  const Written again = write();
  EXPECT_EQ(again.made, 1);
  EXPECT_EQ(again.kept, 1);
  EXPECT_EQ(fs::file_size(fog), size);
}

TEST_F(Write, MakesFoldersAgainThatLostAnImage) {
  use({64, 64, 3});
  options_.layout = Layout::folders;
  options_.severities = {2};
  write();
  fs::remove(folder_ / "fog" / "2" / "0001" / "00004.JPEG");
  fs::resize_file(folder_ / "contrast" / "2" / "0000" / "00000.JPEG", 10);
  EXPECT_EQ(write().made, 2);
  EXPECT_TRUE(fs::exists(folder_ / "fog" / "2" / "0001" / "00004.JPEG"));
  EXPECT_EQ(write().kept, 2);
}

TEST_F(Write, KeepsFilesOfManifestsWithoutSizes) {
  write();
  nlohmann::json manifest = nlohmann::json::parse(std::ifstream(folder_ / "corrupted.json"));
  for (auto& entry : manifest) EXPECT_EQ(entry.erase("extent"), 1u);
  std::ofstream(folder_ / "corrupted.json") << manifest;
  EXPECT_EQ(write().kept, 2);
}

TEST_F(Write, RefusesToWriteWhatAnotherProcessIsWriting) {
  use({64, 64, 3});
  options_.corruptions = {"fog"};
  for (const Layout layout : {Layout::cifar_c, Layout::folders}) {
    options_.layout = layout;
    const std::string target = layout == Layout::cifar_c ? "fog.npy" : "fog/1";
    std::string refused;
    write([&](double) {
      if (refused.empty()) refused = failure();
      return true;
    });
    EXPECT_EQ(refused, "[corrupt] expected to write " + (folder_ / target).string() +
                           " alone, got another process that is writing it");
    const Written again = write();
    EXPECT_EQ(again.made, 0);
    EXPECT_GE(again.kept, 1);
  }
  for (const std::string& file : files()) EXPECT_EQ(file.find(".lock"), std::string::npos) << file;
}

// Nothing of it is locked or written, so that several processes may find it, also read-only.
TEST_F(Write, FindsAFinishedSetWhileAnotherProcessLooksAtIt) {
  use({64, 64, 3});
  options_.corruptions = {"fog"};
  for (const Layout layout : {Layout::cifar_c, Layout::folders}) {
    options_.layout = layout;
    write();
    const TargetLock lock(folder_ / (layout == Layout::cifar_c ? "fog.npy" : "fog/1"));
    EXPECT_EQ(write().made, 0);
  }
  use({28, 28, 1});
  options_.folder = folder_ / "mnist-c";
  options_.layout = Layout::mnist_c;
  write();
  const auto inode = [&](const char* file) {
    struct stat found = {};
    EXPECT_EQ(stat((folder_ / "mnist-c" / file).c_str(), &found), 0) << file;
    return found.st_ino;
  };
  for (const char* file : {"fog/test_labels.npy", "identity/test_images.npy"}) {
    const auto before = inode(file);
    EXPECT_EQ(write().made, 0);
    EXPECT_EQ(inode(file), before) << file;
  }
  std::ofstream(folder_ / "mnist-c/fog/test_labels.npy", std::ios::app) << "more";
  const auto before = inode("fog/test_labels.npy");
  write();
  EXPECT_NE(inode("fog/test_labels.npy"), before);
}

// The other one has a different file under way.
TEST_F(Write, TwoProcessesWriteOneSet) {
  bool begun = false;
  int made = 0;
  options_.corruptions = {"fog", "contrast"};
  made += write([&](double) {
            if (begun) return true;
            begun = true;
            options_.corruptions = {"contrast"};
            made += write().made;
            return true;
          }).made;
  EXPECT_EQ(made, 2);
}

TEST_F(Write, NamesTheFrostTexturesInTheManifest) {
  options_.corruptions = {"fog", "frost"};
  const auto manifest = [&] {
    std::ifstream file(folder_ / "corrupted.json");
    return nlohmann::json::parse(file);
  };
  write();
  EXPECT_EQ(manifest()["frost.npy"]["frost"], "procedural");
  EXPECT_FALSE(manifest()["fog.npy"].contains("frost"));
  options_.frost = test::synthetic_textures();
  const Written again = write();
  EXPECT_EQ(again.made, 1);
  EXPECT_EQ(again.kept, 1);
  EXPECT_EQ(manifest()["frost.npy"]["frost"], "synthetic");
}

TEST_F(Write, RefusesAFolderOfOtherImages) {
  write();
  images_.hash = "other pixels, under the same name";
  EXPECT_NE(failure().find("of other images: " + folder_.string()), std::string::npos);
  images_.hash.clear();
  images_.pixels = images_.pixels.first(images_.size.values());
  images_.labels.resize(1);
  EXPECT_NE(failure().find("of other images: " + folder_.string()), std::string::npos);
  images_.labels.resize(2);
  EXPECT_EQ(failure(), "[corrupt] expected 1 labels, got 2");
}

TEST_F(Write, LeavesNothingHalfWrittenWithoutSpace) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 20000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = failure();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(message.find("fog.npy"), std::string::npos) << message;
  EXPECT_EQ(files(), (std::vector<std::string>{"labels.npy"}));
}

TEST_F(Write, KeepsToWhatTheDatasetsExpect) {
  for (const char* name : {"cifar10-c", "tiny-imagenet-c", "mnist-c"}) {
    for (const std::string& corruption : data::find_dataset(name).corruptions) {
      if (corruption == "identity") continue;
      EXPECT_EQ(find_corruption(corruption).name, corruption);
    }
  }
}

}  // namespace
}  // namespace qact::corrupt
