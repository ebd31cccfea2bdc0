// Checksums, written "md5:..." and "sha256:...".
#pragma once

#include <memory>
#include <string>

#include "qact/data/file.h"
#include "qact/data/split.h"

namespace qact::data {

inline constexpr size_t kShortDigest = 16;  // hexadecimal digits that tell files apart

// Of bytes that come piece by piece.
class Digest {
 public:
  explicit Digest(const std::string& kind = "sha256");  // or "md5"

  void add(const void* bytes, size_t count);
  void add_file(const fs::path& path);
  std::string hex();  // once, at the end

 private:
  std::shared_ptr<void> state_;
};

// `kind`: "md5" or "sha256"; in hexadecimal.
std::string digest_of(const fs::path& path, const std::string& kind);

// What tells data apart, wherever they lie: images, labels and class names, in kShortDigest digits.
std::string digest_of(const Split& split);

// Does nothing where `digest` is empty.
void check_digest(const fs::path& path, const std::string& digest);

}  // namespace qact::data
