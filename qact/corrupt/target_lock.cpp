#include "qact/corrupt/target_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "qact/base/fail.h"

namespace qact::corrupt {
namespace {

// Whether its owner has removed the file that was opened.
bool is_removed(int file, const std::filesystem::path& path) {
  struct stat opened = {}, named = {};
  return fstat(file, &opened) != 0 || stat(path.c_str(), &named) != 0 ||
         opened.st_ino != named.st_ino || opened.st_dev != named.st_dev;
}

}  // namespace

TargetLock::TargetLock(const std::filesystem::path& target)
    : path_(target.parent_path() / ("." + target.filename().string() + ".lock")) {
  std::filesystem::create_directories(target.parent_path());
  do {
    if (file_ >= 0) close(file_);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file_ < 0 || flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (file_ >= 0) close(file_);
      base::fail("corrupt", "expected to write ", target.string(), " alone, got ",
                 error == EWOULDBLOCK ? "another process that is writing it" : strerror(error));
    }
  } while (is_removed(file_, path_));
}

TargetLock::~TargetLock() {
  unlink(path_.c_str());
  close(file_);
}

}  // namespace qact::corrupt
