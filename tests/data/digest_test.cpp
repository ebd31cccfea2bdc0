#include "qact/data/digest.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Digest, KnowsThePublishedExamples) {
  ScratchFolder folder;
  put(folder / "abc", "abc");
  EXPECT_EQ(digest_of(folder / "abc", "md5"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest_of(folder / "abc", "sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(contains(message_of([&] { check_digest(folder / "abc", "md5:00"); }),
                       "got md5:900150983cd24fb0d6963f7d28e17f72"));
}

TEST(DigestOfSplit, ChangesWithAnythingThatIsLearntFrom) {
  const Split base = make_split({2, 3, 1}, 3, pattern(24), {0, 1, 2, 0});
  Split relabelled = base, renamed = base, other_names = base, more_classes = base,
        transposed = base;
  relabelled.labels[3] = 1;
  renamed.class_names = {"cat", "dog", "cow"};
  other_names.class_names = {"catd", "og", "cow"};
  more_classes.classes = 4;
  transposed.size = {3, 2, 1};
  std::vector<uint8_t> pixels = pattern(24);
  pixels[17] ^= 1;
  std::set<std::string> digests = {digest_of(base)};
  for (const Split& each :
       {relabelled, renamed, other_names, more_classes, transposed, base.slice(0, 3),
        base.slice(1, 3), make_split({2, 3, 1}, 3, pixels, {0, 1, 2, 0})}) {
    EXPECT_TRUE(digests.insert(digest_of(each)).second);
  }
  EXPECT_EQ(digest_of(base), digest_of(make_split({2, 3, 1}, 3, pattern(24), {0, 1, 2, 0})));
  EXPECT_EQ(digest_of(base).size(), kShortDigest);
}

}  // namespace
}  // namespace qact::data
