// A lock on one file or folder of a corrupted set, so that one process at a time writes it.
#pragma once

#include <filesystem>

namespace qact::corrupt {

// A hidden file beside the target, locked and removed at the end. The lock ends with its process,
// however that ends.
class TargetLock {
 public:
  // Throws where another process writes the target, or this one does already.
  explicit TargetLock(const std::filesystem::path& target);
  ~TargetLock();
  TargetLock(const TargetLock&) = delete;
  TargetLock& operator=(const TargetLock&) = delete;

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace qact::corrupt
