// Files that are either whole or not there: written without a name in the same folder, synced,
// linked or renamed to their place, and the folder synced. A process that is killed leaves nothing;
// where the file system has no files without names, a hidden one that the next writer removes.
#pragma once

#include <filesystem>
#include <string_view>

namespace qact::base {

// Where a file of this name is written: at the end of symbolic links. Throws where there is
// something that is not a regular file.
std::filesystem::path destination(std::filesystem::path path);

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  // Without commit() what was written is gone and the old file, if any, stays.
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
