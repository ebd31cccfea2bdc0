// Atomic writes: a file is replaced as a whole or not at all. The new content goes to an unnamed
// file (O_TMPFILE) in the same folder, which is synced, then linked or renamed to its place; then
// the folder is synced. A killed process leaves nothing behind; where the file system has no
// unnamed files it leaves a hidden one, which the next writer removes.
#pragma once

#include <filesystem>
#include <string_view>

namespace qact::base {

// The path that a write to `path` replaces: symbolic links are followed. Throws where that is not a
// regular file.
std::filesystem::path destination(std::filesystem::path path);

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  // Without commit() the new content is discarded and an old file stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  bool link_as(const std::filesystem::path& path);
  void close();

  std::filesystem::path path_, temporary_;  // temporary_: empty while the file has no name
  int file_ = -1;
};

void write_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace qact::base
