// Archives made to do harm, and disks that are full.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "qact/data/archive.h"
#include "tests/data/archives.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Unpack, WritesWhatIsInside) {
  for (const Format format : {Format::kTar, Format::kZip}) {
    TemporaryFolder folder;
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
    TemporaryFolder folder;
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
  TemporaryFolder folder;
  make_archive(folder / "good", {{"set/a", text_of(pattern(300000))}});
  const std::string bytes = text_of(folder / "good");
  put(folder / "bad", bytes.substr(0, bytes.size() / 2));
  const std::string message =
      message_of([&] { unpack(folder / "bad", folder / "out", "set/", 1 << 20); });
  EXPECT_TRUE(contains(message, "bad")) << message;
  EXPECT_FALSE(fs::exists(folder / "out/a"));
  put(folder / "text", "plain text");
  EXPECT_FALSE(is_archive(folder / "text"));
  EXPECT_NE(message_of([&] { unpack(folder / "text", folder / "out", "", 1000); }), "");
}

// Files of this process may not grow beyond a limit: the nearest to a full disk that a test
// may make.
TEST(OutputFile, LeavesNothingOnAFullDisk) {
  TemporaryFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of([&] { write_file(folder / "x", pattern(5000)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_TRUE(contains(message, "cannot write " + (folder / "x").string())) << message;
  EXPECT_FALSE(fs::exists(folder / "x"));
  EXPECT_TRUE(contains(message_of([&] {
                         OutputFile file("/dev/full", true);
                         file.keep();
                         OutputFile again("/dev/full", true);
                         try {
                           again.write(pattern(10));
                         } catch (...) {
                           again.keep();
                           throw;
                         }
                       }),
                       "No space left"));
}

}  // namespace
}  // namespace qact::data
