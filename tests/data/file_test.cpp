#include "qact/data/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

// Dataset to be read, a FIFO would wait for a writer.
TEST(File, RefusesWhatIsNoRegularFile) {
  ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "images.npy").c_str(), 0600), 0);
  const std::string refusal = "[file] expected a regular file, got ";
  const auto message = [](const fs::path& path) { return message_of([&] { map_file(path); }); };
  EXPECT_EQ(message(folder / "images.npy"),
            refusal + "a FIFO: " + (folder / "images.npy").string());
  EXPECT_EQ(message(folder.path), refusal + "a folder: " + folder.path.string());
  EXPECT_EQ(message("/dev/null"), refusal + "a device: /dev/null");
  EXPECT_TRUE(contains(message(folder / "none"), "cannot open"));
  EXPECT_FALSE(is_web_page(folder / "images.npy"));  // which every error asks for
}

// Files of this process may not grow beyond a limit: the nearest to a full disk that a test
// may make.
TEST(OutputFile, LeavesNothingOnAFullDisk) {
  ScratchFolder folder;
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
