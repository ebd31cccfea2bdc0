// What tells data apart: the digest, and the names of classes.
#include <gtest/gtest.h>

#include <set>

#include "qact/data/dataset.h"
#include "qact/data/digest.h"
#include "tests/data/folder.h"

namespace qact::data {
namespace {

using namespace test;

TEST(DigestOfData, ChangesWithAnythingThatIsLearntFrom) {
  const Split base = make_split({2, 3, 1}, 3, pattern(24), {0, 1, 2, 0});
  Split relabelled = base, renamed = base, other_names = base, more_classes = base, turned = base;
  relabelled.labels[3] = 1;
  renamed.class_names = {"cat", "dog", "cow"};
  other_names.class_names = {"catd", "og", "cow"};
  more_classes.classes = 4;
  turned.size = {3, 2, 1};
  std::vector<uint8_t> pixels = pattern(24);
  pixels[17] ^= 1;
  std::set<std::string> digests = {digest_of(base)};
  for (const Split& each :
       {relabelled, renamed, other_names, more_classes, turned, base.slice(0, 3), base.slice(1, 3),
        make_split({2, 3, 1}, 3, pixels, {0, 1, 2, 0})}) {
    EXPECT_TRUE(digests.insert(digest_of(each)).second);
  }
  EXPECT_EQ(digest_of(base), digest_of(make_split({2, 3, 1}, 3, pattern(24), {0, 1, 2, 0})));
  EXPECT_EQ(digest_of(base).size(), kShortDigest);
}

// An image per class and part.
void put_images(const fs::path& folder, const std::string& part,
                const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    image::Image image({3, 3, 3});
    std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(40 * i));
    put(folder / part / classes[i] / "1.png", image::encode_png(image));
  }
}

TEST(ClassNames, AreThoseOfTheFolders) {
  TemporaryFolder folder;
  put_images(folder.path(), "train", {"cat", "cow", "dog"});
  put_images(folder.path(), "test", {"dog", "cat"});
  const Opened opened = open_dataset(folder.path().string() + "/", "");
  const std::vector<std::string> names = {"cat", "cow", "dog"};
  EXPECT_EQ(opened.dataset.class_names, names);
  EXPECT_EQ(opened.read({Part::kTrain}).class_names, names);
  // A class that the test part lacks does not move the others.
  const Split test = opened.read({Part::kTest});
  EXPECT_EQ(test.class_names, names);
  EXPECT_EQ(test.classes, 3);
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 2}));

  fs::rename(folder / "test/cat", folder / "test/fox");
  EXPECT_EQ(message_of([&] { opened.read({Part::kTest}); }),
            "[folder] expected the 3 classes of " + (folder / "train").string() + ", got fox in " +
                (folder / "test").string());
}

TEST(ClassNames, AreThoseOfTheTable) {
  for (const Dataset& dataset : datasets()) {
    if (dataset.class_names.empty()) continue;
    EXPECT_EQ(static_cast<int>(dataset.class_names.size()), dataset.classes) << dataset.name;
    const std::set<std::string> unique(dataset.class_names.begin(), dataset.class_names.end());
    EXPECT_EQ(unique.size(), dataset.class_names.size()) << dataset.name;
  }
  const Split digits = open_dataset("mnist-small", "").read({Part::kTest});
  ASSERT_EQ(digits.class_names.size(), 10u);
  EXPECT_EQ(digits.class_names[7], "7");
}

}  // namespace
}  // namespace qact::data
