// A lock file: one fetch at a time into a data folder.
#pragma once

#include "qact/data/fetch.h"

namespace qact::data {

// Waits while another process holds the lock. The lock ends with its process, however that ends.
class FetchLock {
 public:
  FetchLock(const fs::path& data_folder, const FetchEvents& events);
  ~FetchLock();
  FetchLock(const FetchLock&) = delete;
  FetchLock& operator=(const FetchLock&) = delete;

 private:
  fs::path path_;
  int file_ = -1;
};

}  // namespace qact::data
