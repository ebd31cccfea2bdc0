#include "qact/data/digest.h"

#include <openssl/evp.h>

#include <fstream>
#include <vector>

#include "qact/base/fail.h"
#include "qact/base/regular_file.h"

namespace qact::data {

namespace {

using base::fail;

EVP_MD_CTX* context(const std::shared_ptr<void>& state) {
  return static_cast<EVP_MD_CTX*>(state.get());
}

}  // namespace

Digest::Digest(const std::string& kind)
    : state_(EVP_MD_CTX_new(),
             [](void* state) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(state)); }) {
  const EVP_MD* algorithm = EVP_get_digestbyname(kind.c_str());
  if (!algorithm) fail("digest", "expected md5 or sha256, got ", kind);
  EVP_DigestInit_ex(context(state_), algorithm, nullptr);
}

void Digest::add(const void* bytes, size_t count) {
  EVP_DigestUpdate(context(state_), bytes, count);
}

void Digest::add_file(const fs::path& path) {
  base::expect_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    add(buffer.data(), static_cast<size_t>(in.gcount()));
  }
  if (!in.eof()) fail("digest", "cannot read ", path.string());
}

std::string Digest::hex() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  EVP_DigestFinal_ex(context(state_), bytes, &count);
  std::string out;
  for (unsigned i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

std::string digest_of(const fs::path& path, const std::string& kind) {
  Digest digest(kind);
  digest.add_file(path);
  return digest.hex();
}

std::string digest_of(const Split& split) {
  Digest digest;
  const auto add_text = [&](const std::string& text) { digest.add(text.c_str(), text.size() + 1); };
  const auto [height, width, channels] = split.size;
  const auto names = static_cast<int64_t>(split.class_names.size());
  for (const int64_t number : {int64_t{height}, int64_t{width}, int64_t{channels},
                               int64_t{split.classes}, split.count(), names}) {
    add_text(std::to_string(number));
  }
  for (const std::string& name : split.class_names) add_text(name);
  digest.add(split.labels.data(), split.labels.size() * sizeof(split.labels[0]));
  digest.add(split.pixels.data(), split.pixels.size());
  return digest.hex().substr(0, kShortDigest);
}

void check_digest(const fs::path& path, const std::string& digest) {
  if (digest.empty()) return;
  const std::string kind = digest.substr(0, digest.find(':'));
  const std::string found = kind + ":" + digest_of(path, kind);
  if (found != digest) {
    fail("digest", "expected ", digest, ", got ", found, " of ", path.string());
  }
}

}  // namespace qact::data
