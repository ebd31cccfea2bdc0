// Files under tests/fixtures, read as bytes and as arrays.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qact/image/npy.h"

namespace qact::test {

inline std::vector<uint8_t> bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("[test] cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<uint8_t> fixture(const std::string& name) {
  return bytes_of_file(QACT_TEST_FIXTURES "/" + name);
}

struct Array {
  image::NpyHeader header;
  std::vector<uint8_t> bytes;
};

inline Array array_of_file(const std::string& path) {
  const std::vector<uint8_t> file = bytes_of_file(path);
  Array out{image::parse_npy_header(file, static_cast<int64_t>(file.size())), {}};
  out.bytes.assign(file.begin() + out.header.data_offset, file.end());
  return out;
}

inline Array fixture_array(const std::string& name) {
  return array_of_file(QACT_TEST_FIXTURES "/" + name);
}

}  // namespace qact::test
