// The header of numpy's .npy files: versions 1 to 3, C order, little-endian or single bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/base/bytes.h"

namespace qact::image {

struct NpyHeader {
  std::string dtype;  // as numpy writes it: "|u1", "<i8", ...
  std::vector<int64_t> shape;
  int64_t data_offset = 0;  // from the file's start

  int64_t count() const;  // of elements
  int64_t item_bytes() const;
};

// `file_bytes` is the size of the whole file, against which the shape is checked; `bytes` may be
// only its beginning. Throws std::runtime_error.
NpyHeader parse_npy_header(base::Bytes bytes, int64_t file_bytes);

std::vector<uint8_t> make_npy_header(const std::string& dtype, const std::vector<int64_t>& shape);

}  // namespace qact::image
