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

const char* name_of(std::filesystem::file_type type) {
  using enum std::filesystem::file_type;
  switch (type) {
    case directory:
      return "a folder";
    case symlink:
      return "a symbolic link";
    case block:
    case character:
      return "a device";
    case fifo:
      return "a FIFO";
    case socket:
      return "a socket";
    default:
      return "something else";
  }
}

// A rename would put a file in the place of a device, too.
void check_replaceable(const std::filesystem::path& path, std::filesystem::file_type type) {
  using enum std::filesystem::file_type;
  if (type == none || type == not_found || type == regular) return;
  throw std::runtime_error("[atomic_file] expected a regular file to replace, got " +
                           std::string(name_of(type)) + " (" + path.string() + ")");
}

void check_replaceable(const std::filesystem::path& path) {
  std::error_code ignored;  // creating the file will say why
  check_replaceable(path, std::filesystem::symlink_status(path, ignored).type());
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

std::filesystem::path destination(std::filesystem::path path) {
  if (path.empty()) throw std::runtime_error("[atomic_file] expected the path of a file, got ''");
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code ignored;
  const std::filesystem::path given = path;
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    if (links == kMostLinks) {
      errno = ELOOP;
      fail("follow the links of", path);
    }
    path = path.parent_path() / std::filesystem::read_symlink(path);
  }
  check_replaceable(path);
  // What a link leads to need not have a path: /dev/stdout may be "pipe:[7]".
  check_replaceable(given, std::filesystem::status(given, ignored).type());
  return path;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(destination(path)) {
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
  check_replaceable(path_);
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
