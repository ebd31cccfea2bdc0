// Files that are either whole or not there: written under a temporary name in the same
// folder, synced, renamed over the old file, and the folder synced.
#pragma once

#include <filesystem>
#include <string_view>

namespace qact::results {

// Where a file of this name is written: at the end of symbolic links. Throws where there is
// something that is not a regular file.
std::filesystem::path destination(std::filesystem::path path);

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  // Without commit() the temporary file is removed and the old file, if any, stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  void close();

  std::filesystem::path path_, temporary_;
  int file_ = -1;
};

void write_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace qact::results
