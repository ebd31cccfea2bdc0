#include "qact/data/fetch_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "qact/base/fail.h"

namespace qact::data {
namespace {

using base::fail;

int open_lock(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) fail("fetch", "cannot write ", path.string(), ": ", std::strerror(errno));
  return file;
}

// The owner, as it has written into the file.
std::string owner_of(int file) {
  char text[32] = {};
  const ssize_t count = ::pread(file, text, sizeof text - 1, 0);
  return count > 0 ? "process " + std::string(text, static_cast<size_t>(count)) : "another process";
}

// Whether the previous owner has removed the file that was opened.
bool is_removed(int file, const fs::path& path) {
  struct stat opened = {}, named = {};
  return ::fstat(file, &opened) != 0 || ::stat(path.c_str(), &named) != 0 ||
         opened.st_ino != named.st_ino || opened.st_dev != named.st_dev;
}

}  // namespace

FetchLock::FetchLock(const fs::path& data_folder, const FetchEvents& events)
    : path_(data_folder / ".fetch.lock"), file_(open_lock(path_)) {
  bool notified = false;
  while (true) {
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
      if (!is_removed(file_, path_)) break;
      ::close(file_);
      file_ = open_lock(path_);
      continue;
    }
    const int error = errno;
    const bool taken = error == EWOULDBLOCK;
    const std::string reason = std::strerror(error), owner = owner_of(file_);
    const bool stopped = events.progress && !events.progress(0, 0);
    if (!taken || stopped) {
      ::close(file_);
      if (!taken) fail("fetch", "cannot lock ", path_.string(), ": ", reason);
      fail("fetch", "stopped, waiting for ", owner, ", which fetches into ", data_folder.string());
    }
    if (!notified && events.waiting) events.waiting(owner);
    notified = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::string me = std::to_string(::getpid());
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, me.data(), me.size(), 0) < 0) {
    // Nothing is lost but the process number in another's message.
  }
}

FetchLock::~FetchLock() {
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace qact::data
