#include "qact/corrupt/manifest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "qact/base/atomic_file.h"
#include "qact/base/fail.h"
#include "qact/base/regular_file.h"

namespace qact::corrupt {
namespace {

constexpr const char* kName = "corrupted.json";

// Locks a file that others replace, and makes an empty one where there is none.
class ReplaceLock {
 public:
  explicit ReplaceLock(const std::filesystem::path& path) {
    struct stat locked = {}, named = {};
    do {
      if (file_ >= 0) close(file_);
      file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      if (file_ < 0 || flock(file_, LOCK_EX) != 0 || fstat(file_, &locked) != 0) {
        const std::string reason = std::strerror(errno);
        if (file_ >= 0) close(file_);
        base::fail("corrupt", "expected to lock ", path.string(), ", could not: ", reason);
      }
      // Another process may have replaced the file while this one waited for its lock.
    } while (stat(path.c_str(), &named) != 0 || locked.st_ino != named.st_ino);
  }
  ~ReplaceLock() { close(file_); }
  ReplaceLock(const ReplaceLock&) = delete;
  ReplaceLock& operator=(const ReplaceLock&) = delete;

 private:
  int file_ = -1;
};

// What a file that was cut, or a folder that has lost one, no longer has.
nlohmann::json extent(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return {{"files", 1}, {"bytes", fs::file_size(path)}};
  uintmax_t files = 0, bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    bytes += entry.file_size();
  }
  return {{"files", files}, {"bytes", bytes}};
}

}  // namespace

Manifest::Manifest(const std::filesystem::path& folder) : folder_(folder) {
  base::expect_regular_file(folder_ / kName);
  if (std::filesystem::exists(folder_ / "distorted.json")) {
    base::fail("corrupt",
               "expected a folder of this version, got one with distorted.json, of an "
               "earlier one: ",
               folder_.string());
  }
  read();
}

void Manifest::read() {
  std::ifstream file(folder_ / kName);
  if (!file || file.peek() == std::ifstream::traits_type::eof()) return;
  entries_ = nlohmann::json::parse(file, nullptr, false);
  if (!entries_.is_object()) {
    base::fail("corrupt", "expected a manifest of finished files, got something else in ",
               (folder_ / kName).string());
  }
}

bool Manifest::has(const std::string& name, const nlohmann::json& made_with) const {
  if (!std::filesystem::exists(folder_ / name) || !entries_.contains(name)) return false;
  nlohmann::json options = entries_[name];
  // Manifests of earlier snapshots say nothing of it.
  const nlohmann::json whole = options.value("extent", nlohmann::json());
  options.erase("extent");
  if (options != made_with) return false;
  try {
    return whole.is_null() || whole == extent(folder_ / name);
  } catch (const std::filesystem::filesystem_error&) {
    return false;  // another process is making it anew
  }
}

void Manifest::add(const std::string& name, const nlohmann::json& made_with) {
  const ReplaceLock lock(folder_ / kName);
  read();
  entries_[name] = made_with;
  entries_[name]["extent"] = extent(folder_ / name);
  base::write_atomically(folder_ / kName, entries_.dump(1) + "\n");
}

void Manifest::check_images(const nlohmann::json& made_with) const {
  for (const auto& [name, other] : entries_.items()) {
    if (!std::filesystem::exists(folder_ / name) ||
        other.value("split", "") != made_with.value("split", "")) {
      continue;
    }
    for (const char* key : {"data", "shape", "data_hash"}) {
      if (other.value(key, nlohmann::json()) == made_with[key]) continue;
      base::fail("corrupt", "expected a folder for ", made_with["data"].dump(), " of shape ",
                 made_with["shape"].dump(), ", got one with ", name,
                 " of other images: ", folder_.string());
    }
  }
}

}  // namespace qact::corrupt
