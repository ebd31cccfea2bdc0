// safetensors files on disk.
#pragma once

#include <filesystem>
#include <vector>

#include "qact/safetensors/format.h"

namespace qact::safetensors {

// A whole file in memory. `contents` points into `bytes`, so it cannot be copied.
struct File {
  std::vector<uint8_t> bytes;
  Contents contents;

  explicit File(const std::filesystem::path& path);
  File(File&&) = default;
  File& operator=(File&&) = default;
};

// Atomic: a failure leaves the file that was there before.
void write(const std::filesystem::path& path, const Contents& contents);

}  // namespace qact::safetensors
