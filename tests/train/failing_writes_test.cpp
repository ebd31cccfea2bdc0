// Each system call of a save fails once, and the run is resumed from what is left.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "tests/train/training_fixture.h"

namespace {

// Which call is to fail, if any. The definitions below replace the C library's for all code that is
// linked into this program.
struct Fault {
  bool armed = false;
  int left = 0;   // calls until the one that fails
  int error = 0;  // its errno
} fault;

bool fails() {
  if (!fault.armed || --fault.left != 0) return false;
  errno = fault.error;
  return true;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (!fails()) return real(file, bytes, count);
  // A full disk takes a part first.
  if (real(file, bytes, count / 2) < 0) return -1;
  errno = fault.error;
  return -1;
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  return fails() ? -1 : real(file);
}

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return fails() ? -1 : real(from, to);
}

}  // extern "C"

namespace qact::train {
namespace {

namespace fs = std::filesystem;

void restore(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

bool has_only_whole_files(const RunFolder& run) {
  for (const auto& entry : fs::directory_iterator(run.folder)) {
    const fs::path path = entry.path();
    if (path != run.config() && path != run.model() && path != run.best() && path != run.state() &&
        path != run.rows() && path.filename() != ".lock") {
      return false;
    }
  }
  return true;
}

TEST(FailingWrites, LeaveAStateToResumeFrom) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.epochs = 2;
  const RunFolder whole = scratch.run("whole");
  train(config, whole, false);
  const RunFolder run = scratch.run("run");
  int calls = 4;  // the steps of an epoch: its end is still to come
  ASSERT_TRUE(train(config, run, false, stop_after(&calls)).interrupted);
  restore(run.folder, scratch.path / "before");
  const std::string before = contents(run.state());

  int failures = 0;
  for (int k = 1;; ++k) {
    restore(scratch.path / "before", run.folder);
    int more = 3;  // through the end of the epoch and two steps of the next
    fault = {true, k, k % 2 ? ENOSPC : EIO};
    std::string message;
    try {
      train(config, run, true, stop_after(&more));
    } catch (const std::exception& error) {
      message = error.what();
    }
    fault.armed = false;
    if (message.empty()) break;
    ++failures;
    EXPECT_NE(message.find("[atomic_file]"), std::string::npos) << message;
    EXPECT_NE(message.find(run.folder.string()), std::string::npos) << message;
    EXPECT_TRUE(has_only_whole_files(run)) << "call " << k;
    ASSERT_FALSE(train(config, run, true).interrupted) << "call " << k;
    EXPECT_TRUE(contents(run.model()) == contents(whole.model())) << "call " << k;
    EXPECT_TRUE(contents(run.best()) == contents(whole.best())) << "call " << k;
  }
  // config, best, then model, rows and state twice: a write, two syncs and a rename each; one of
  // them is a new file, which needs no rename.
  EXPECT_EQ(failures, 4 * 8 - 1);
}

}  // namespace
}  // namespace qact::train
