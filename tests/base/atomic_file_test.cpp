#include "qact/base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/base/scratch_folder.h"

namespace qact::base {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t files_in(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                           std::filesystem::directory_iterator()));
}

TEST(AtomicFile, ReplacesTheOldFileWhole) {
  const ScratchFolder scratch;
  const auto path = scratch.path / "file";
  write_atomically(path, "old and long");
  write_atomically(path, std::string("new\0", 4));
  EXPECT_EQ(contents(path), std::string("new\0", 4));
  EXPECT_EQ(files_in(scratch.path), 1u);
}

TEST(AtomicFile, LeavesTheOldFileWithoutCommit) {
  const ScratchFolder scratch;
  const auto path = scratch.path / "file";
  write_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("half of the n");
    EXPECT_EQ(contents(path), "old");
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files_in(scratch.path), 1u);
}

TEST(AtomicFile, AKilledWriterLeavesNothing) {
  const ScratchFolder scratch;
  write_atomically(scratch.path / "file", "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile replaced(scratch.path / "file"), made(scratch.path / "other");
    replaced.write("half of the n");
    made.write("half of the n");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  write_atomically(scratch.path / "file", "new");  // removes what an unnamed file would have spared
  write_atomically(scratch.path / "other", "");
  EXPECT_EQ(files_in(scratch.path), 2u);
}

// A file has a name for the moment in which it replaces another.
TEST(AtomicFile, RemovesWhatNoProcessHolds) {
  const ScratchFolder scratch;
  const auto abandoned = scratch.path / ".file.qact-partial-1-2";
  const auto held = scratch.path / ".file.qact-partial-3-4";
  std::ofstream(abandoned) << "half";
  const int file = open(held.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  write_atomically(scratch.path / "file", "old");
  write_atomically(scratch.path / "file", "new");
  close(file);
  EXPECT_FALSE(std::filesystem::exists(abandoned));
  EXPECT_TRUE(std::filesystem::exists(held));
  EXPECT_EQ(contents(scratch.path / "file"), "new");
}

// Where the file system has no unnamed files, their names mark them as this library's.
TEST(AtomicFile, SparesFilesOfOthers) {
  const ScratchFolder scratch;
  for (const char* name : {"file.backup", "file.XXXXXX", ".file.qact"}) {
    write_atomically(scratch.path / name, "mine");
  }
  write_atomically(scratch.path / "file", "new");
  EXPECT_EQ(files_in(scratch.path), 4u);
}

TEST(AtomicFile, HasTheUsualMode) {
  const ScratchFolder scratch;
  const mode_t mask = umask(0022);
  write_atomically(scratch.path / "file", "");
  umask(mask);
  struct stat status = {};
  ASSERT_EQ(stat((scratch.path / "file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

// Why `path` is refused.
std::string refusal(const std::filesystem::path& path) {
  try {
    AtomicFile file(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  const ScratchFolder scratch;
  const std::string message = refusal(scratch.path / "missing" / "file");
  EXPECT_NE(message.find("missing/file"), std::string::npos) << message;
  EXPECT_NE(message.find("No such file"), std::string::npos) << message;
  EXPECT_EQ(refusal(""), "[atomic_file] expected the path of a file, got ''");
}

TEST(AtomicFile, FollowsLinksToTheirEnd) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const fs::path folder = scratch.path / "folder", target = folder / "target";
  fs::create_directory(folder);
  fs::create_symlink("target", folder / "near");
  fs::create_symlink("folder/near", scratch.path / "link");
  for (const char* text : {"to a file that is not there yet", "to one that is"}) {
    write_atomically(scratch.path / "link", text);
    EXPECT_EQ(contents(target), text);
    EXPECT_FALSE(fs::is_symlink(target));
  }
  EXPECT_TRUE(fs::is_symlink(scratch.path / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "near"));
  EXPECT_EQ(files_in(folder), 2u);
  EXPECT_EQ(files_in(scratch.path), 2u);

  fs::create_symlink("loop", scratch.path / "loop");
  EXPECT_NE(refusal(scratch.path / "loop").find("follow the links of"), std::string::npos);
}

TEST(AtomicFile, ReplacesOnlyRegularFiles) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const fs::path folder = scratch.path / "folder", fifo = scratch.path / "fifo",
                 device = scratch.path / "device", link = scratch.path / "link";
  const std::string expected = "[atomic_file] expected a regular file to replace, got ";
  fs::create_directory(folder);
  EXPECT_EQ(refusal(folder), expected + "a folder (" + folder.string() + ")");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("fifo", link);
  EXPECT_EQ(refusal(fifo), expected + "a FIFO (" + fifo.string() + ")");
  EXPECT_EQ(refusal(link), refusal(fifo));
  EXPECT_TRUE(fs::is_fifo(fifo));
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0) {  // root alone may
    EXPECT_EQ(refusal(device), expected + "a device (" + device.string() + ")");
    EXPECT_TRUE(fs::is_character_file(device));
  }

  // As /dev/stdout may be: a link to "pipe:[7]", which is no path.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string pipe_end = "/proc/self/fd/" + std::to_string(ends[1]);
  EXPECT_EQ(refusal(pipe_end), expected + "a FIFO (" + pipe_end + ")");
  close(ends[0]);
  close(ends[1]);

  const fs::path late = scratch.path / "late";
  AtomicFile file(late);
  ASSERT_EQ(mkfifo(late.c_str(), 0600), 0);
  EXPECT_THROW(file.commit(), std::runtime_error);
  EXPECT_TRUE(fs::is_fifo(late));
}

}  // namespace
}  // namespace qact::base
