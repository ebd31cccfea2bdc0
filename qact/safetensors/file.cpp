#include "qact/safetensors/file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "qact/base/atomic_file.h"
#include "qact/base/regular_file.h"
#include "qact/safetensors/encode.h"
#include "qact/safetensors/parse.h"

namespace qact::safetensors {
namespace {

std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  const auto check = [&](bool good, const char* what) {
    if (!good) fail(path.string(), what, std::generic_category().message(errno));
  };
  base::expect_regular_file(path);
  errno = 0;
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  check(stream.is_open() && stream.tellg() >= 0, "a readable file");
  std::vector<uint8_t> bytes(static_cast<size_t>(stream.tellg()));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  check(stream.good() || bytes.empty(), "to read the whole file");
  return bytes;
}

}  // namespace

File::File(const std::filesystem::path& path)
    : bytes(read_bytes(path)), contents(parse(bytes, path.string())) {}

void write(const std::filesystem::path& path, const Contents& contents) {
  const std::vector<uint8_t> bytes = encode(contents);
  base::write_atomically(path, base::as_text(bytes));
}

}  // namespace qact::safetensors
