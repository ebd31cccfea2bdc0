// Digests of files and data. Published checksums are written "md5:..." or "sha256:...".
#pragma once

#include <memory>
#include <string>

#include "qact/data/file.h"
#include "qact/data/split.h"

namespace qact::data {

inline constexpr size_t kShortDigest = 16;  // hexadecimal digits, enough to tell files apart

// The digest of bytes that arrive piece by piece.
class Digest {
 public:
  explicit Digest(const std::string& kind = "sha256");  // or "md5"

  void add(const void* bytes, size_t count);
  void add_file(const fs::path& path);
  std::string hex();  // once, at the end

 private:
  std::shared_ptr<void> state_;
};

// In hexadecimal. `kind`: "md5" or "sha256".
std::string digest_of(const fs::path& path, const std::string& kind);

// The digest of images, labels and class names, in kShortDigest digits: the same for the same data,
// wherever its files are.
std::string digest_of(const Split& split);

// Throws unless the file has this digest, "md5:..." or "sha256:...". An empty one always passes.
void check_digest(const fs::path& path, const std::string& digest);

}  // namespace qact::data
