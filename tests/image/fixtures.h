// Files under tests/fixtures and bytes in general.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qact/image/codec.h"

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
  image::ArrayHeader header;
  std::vector<uint8_t> bytes;
};

inline Array fixture_array(const std::string& name) {
  const std::vector<uint8_t> file = fixture(name);
  Array out{image::parse_npy_header(file, static_cast<int64_t>(file.size())), {}};
  out.bytes.assign(file.begin() + out.header.data_offset, file.end());
  return out;
}

// The message of what `action` throws, or nothing.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace qact::test
