// Archives made to do harm, among others.
#include "qact/data/archive.h"

#include <gtest/gtest.h>

#include "tests/data/make_archive.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Unpack, WritesWhatIsInside) {
  for (const Format format : {Format::tar, Format::zip}) {
    ScratchFolder folder;
    make_archive(folder / "a", {{"other/x", "no"}, {"./set/a/1", "one"}, {"set/2", "two"}}, format);
    EXPECT_TRUE(is_archive(folder / "a"));
    unpack(folder / "a", folder / "out", "set/", 1000);
    EXPECT_EQ(text_of(folder / "out/a/1"), "one");
    EXPECT_EQ(text_of(folder / "out/2"), "two");
    EXPECT_FALSE(fs::exists(folder / "out/x"));
  }
}

TEST(Unpack, RefusesHarm) {
  const std::pair<std::vector<Entry>, const char*> cases[] = {
      {{{"set/../../evil", "x"}}, "within the dataset"},
      {{{"set//etc/evil", "x"}}, "within the dataset"},
      {{{"set/a", "", AE_IFLNK, "/etc"}, {"set/a/evil", "x"}}, "a link or a device"},
      {{{"set/b", "x"}, {"set/a", "", AE_IFREG, "/etc/hostname"}}, "a link or a device"},
      {{{"set/a", "", AE_IFIFO}}, "a link or a device"},
      {{{"set/a", std::string(5000, ' ')}}, "a bomb"},
      {{{"elsewhere/a", "x"}}, "got none"},
  };
  for (const auto& [entries, reason] : cases) {
    ScratchFolder folder;
    make_archive(folder / "bad", entries);
    const std::string message =
        message_of([&] { unpack(folder / "bad", folder / "in/out", "set/", 4000); });
    EXPECT_TRUE(contains(message, reason)) << message;
    EXPECT_FALSE(fs::exists(folder / "evil"));
    EXPECT_FALSE(fs::exists(folder / "in/evil"));
    EXPECT_FALSE(fs::exists(folder / "in/out/a"));
  }
}

TEST(Unpack, RefusesATruncatedArchive) {
  ScratchFolder folder;
  make_archive(folder / "good", {{"set/a", text_of(pattern(300000))}});
  const std::string bytes = text_of(folder / "good");
  put(folder / "bad", bytes.substr(0, bytes.size() / 2));
  const std::string message =
      message_of([&] { unpack(folder / "bad", folder / "out", "set/", 1 << 20); });
  EXPECT_TRUE(contains(message, "bad")) << message;
  EXPECT_FALSE(fs::exists(folder / "out/a"));
  put(folder / "text", "plain text");
  EXPECT_FALSE(is_archive(folder / "text"));
  EXPECT_NE(message_of([&] { unpack(folder / "text", folder / "out", "", 1000); }), kNothingThrown);
}

}  // namespace
}  // namespace qact::data
