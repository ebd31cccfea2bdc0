#include "qact/results/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace qact::results {
namespace {

[[noreturn]] void fail(const char* expected, const std::filesystem::path& path) {
  throw std::runtime_error("[atomic_file] expected to " + std::string(expected) + " " +
                           path.string() + ", got: " + std::generic_category().message(errno));
}

// mkstemp makes files private; a finished one is as open as the umask allows.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

void sync_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail("open the folder", folder);
  const int failed = fsync(file);
  close(file);
  // Some file systems cannot sync a folder and say so with EINVAL.
  if (failed && errno != EINVAL) fail("sync the folder", folder);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::string name = path_.string() + ".XXXXXX";
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail("create a file beside", path_);
  temporary_ = name;
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", temporary_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (fchmod(file_, usual_mode()) != 0) fail("set the mode of", temporary_);
  if (fsync(file_) != 0) fail("sync", temporary_);
  close();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to", path_);
  temporary_.clear();
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

void AtomicFile::close() {
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) fail("close", temporary_);
}

void write_atomically(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace qact::results
