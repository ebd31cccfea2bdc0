#include "qact/results/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/results/scratch_folder.h"

namespace qact::results {
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
    EXPECT_EQ(files_in(scratch.path), 2u);
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files_in(scratch.path), 1u);
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

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  const ScratchFolder scratch;
  try {
    write_atomically(scratch.path / "missing" / "file", "text");
    FAIL() << "expected an error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("missing/file"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace qact::results
