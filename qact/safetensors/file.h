// safetensors on disk.
#pragma once

#include <filesystem>
#include <vector>

#include "qact/safetensors/format.h"

namespace qact::safetensors {

// A whole file in memory, and what it holds. The views look into `bytes`: hence no copies.
struct File {
  std::vector<uint8_t> bytes;
  Contents contents;

  explicit File(const std::filesystem::path& path);
  File(File&&) = default;
  File& operator=(File&&) = default;
};

// Whole or not at all: a failure leaves what was there before.
void write(const std::filesystem::path& path, const Contents& contents);

}  // namespace qact::safetensors
