#include "qact/base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "qact/base/fail.h"
#include "qact/base/regular_file.h"

namespace qact::base {
namespace {

[[noreturn]] void fail_with_errno(const char* expected, const std::filesystem::path& path) {
  const std::string reason = std::generic_category().message(errno);
  fail("atomic_file", "expected to ", expected, " ", path.string(), ", got: ", reason);
}

// Temporary files are private; a finished one is as open as the umask allows.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// A rename would replace even a device.
void check_replaceable(const std::filesystem::path& path, std::filesystem::file_type type) {
  using enum std::filesystem::file_type;
  if (type == none || type == not_found || type == regular) return;
  fail("atomic_file", "expected a regular file to replace, got ", file_type_name(type), " (",
       path.string(), ")");
}

void check_replaceable(const std::filesystem::path& path) {
  std::error_code ignored;  // creating the file will say why
  check_replaceable(path, std::filesystem::symlink_status(path, ignored).type());
}

void sync_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_with_errno("open the folder", folder);
  const int failed = fsync(file);
  close(file);
  // Some file systems cannot sync a folder and say so with EINVAL.
  if (failed && errno != EINVAL) fail_with_errno("sync the folder", folder);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::string entry_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

// A file without a name (O_TMPFILE), which vanishes with the process unless it is linked to one. -1
// where the file system has no such files.
int open_unnamed(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0 || access(entry_of(file).c_str(), F_OK) == 0) return file;
  close(file);
  return -1;
}

// Part of every temporary file's name, and of no other file's.
constexpr std::string_view kMark = ".qact-partial-";

std::string temporary_prefix(const std::filesystem::path& path) {
  return (folder_of(path) / ("." + path.filename().string())).string() + std::string(kMark);
}

// Removes temporary files of `path` whose writers were killed: no process holds their lock.
void remove_abandoned(const std::filesystem::path& path) {
  const std::string start = std::filesystem::path(temporary_prefix(path)).filename().string();
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder_of(path), ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    if (!it->path().filename().string().starts_with(start)) continue;
    const int file = open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(it->path().c_str());
    close(file);
  }
}

}  // namespace

std::filesystem::path destination(std::filesystem::path path) {
  if (path.empty()) fail("atomic_file", "expected the path of a file, got ''");
  constexpr int kMaxLinks = 40;  // as Linux
  std::error_code ignored;
  const std::filesystem::path given = path;
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    if (links == kMaxLinks) {
      errno = ELOOP;
      fail_with_errno("follow the links of", path);
    }
    path = path.parent_path() / std::filesystem::read_symlink(path);
  }
  check_replaceable(path);
  // What a link leads to need not have a path: /dev/stdout may be "pipe:[7]".
  check_replaceable(given, std::filesystem::status(given, ignored).type());
  return path;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(destination(path)) {
  file_ = open_unnamed(folder_of(path_));
  if (file_ < 0) {
    remove_abandoned(path_);
    std::string name = temporary_prefix(path_) + "XXXXXX";
    file_ = mkostemp(name.data(), O_CLOEXEC);
    if (file_ < 0) fail_with_errno("create a file beside", path_);
    temporary_ = name;
  }
  flock(file_, LOCK_EX | LOCK_NB);  // held until close(): remove_abandoned() leaves it alone
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("write", path_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (fchmod(file_, usual_mode()) != 0) fail_with_errno("set the mode of", path_);
  if (fsync(file_) != 0) fail_with_errno("sync", path_);
  if (temporary_.empty() && link_as(path_)) return sync_folder(folder_of(path_));
  check_replaceable(path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("rename to", path_);
  temporary_.clear();
  close();
  sync_folder(folder_of(path_));
}

// Links the unnamed file to `path`. Where that name is taken, links it to a temporary name instead,
// to be renamed, and returns false.
bool AtomicFile::link_as(const std::filesystem::path& path) {
  const std::string open_file = entry_of(file_);
  const auto link = [&](const std::string& name) {
    return linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(path.string())) {
    close();
    return true;
  }
  if (errno != EEXIST) fail_with_errno("name", path);
  remove_abandoned(path);
  // Another machine may have a process of the same number.
  constexpr int kMaxNames = 100;
  const std::string start = temporary_prefix(path) + std::to_string(getpid()) + "-";
  for (int i = 0; !link(temporary_ = start + std::to_string(i)); ++i) {
    if (errno == EEXIST && i < kMaxNames) continue;
    temporary_.clear();
    fail_with_errno("create a file beside", path);
  }
  return false;
}

void AtomicFile::close() {
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) fail_with_errno("close", path_);
}

void write_atomically(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace qact::base
