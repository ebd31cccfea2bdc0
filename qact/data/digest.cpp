#include "qact/data/digest.h"

#include <openssl/evp.h>

#include <fstream>
#include <memory>
#include <vector>

#include "qact/image/fail.h"

namespace qact::data {

using image::fail;

std::string digest_of(const fs::path& path, const std::string& kind) {
  const EVP_MD* algorithm = EVP_get_digestbyname(kind.c_str());
  if (!algorithm) fail("digest", "expected md5 or sha256, got ", kind);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(state.get(), algorithm, nullptr);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    EVP_DigestUpdate(state.get(), buffer.data(), in.gcount());
  }
  if (!in.eof()) fail("digest", "cannot read ", path.string());
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  EVP_DigestFinal_ex(state.get(), bytes, &count);
  std::string out;
  for (unsigned i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
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
