// Files for tests: bytes, the formats that datasets come in, and a folder to put them in.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "qact/image/npy.h"
#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"
#include "tests/image/fixtures.h"

namespace qact::test {

namespace fs = std::filesystem;
using Buffer = std::vector<uint8_t>;

inline void put(const fs::path& path, const Buffer& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline void put(const fs::path& path, const std::string& text) {
  put(path, Buffer(text.begin(), text.end()));
}

inline std::string text_of(const Buffer& bytes) { return {bytes.begin(), bytes.end()}; }

inline std::string text_of(const fs::path& path) { return text_of(bytes_of_file(path.string())); }

// Bytes that differ from one index to the next.
inline Buffer pattern(size_t count, unsigned salt = 0) {
  Buffer out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>((i * 7 + i / 251 + salt) % 256);
  return out;
}

inline Buffer joined(Buffer head, const Buffer& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

inline Buffer idx_file(const std::vector<uint32_t>& shape, const Buffer& values) {
  Buffer out = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(size >> shift));
  }
  return joined(out, values);
}

inline Buffer npy_file(const std::string& dtype, const std::vector<int64_t>& shape,
                       const Buffer& data) {
  return joined(image::make_npy_header(dtype, shape), data);
}

inline Buffer gzip(const Buffer& bytes) {
  Buffer out(bytes.size() + bytes.size() / 100 + 100);
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace qact::test
