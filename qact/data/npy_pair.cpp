#include "qact/data/npy_pair.h"

#include <algorithm>
#include <cstring>

#include "qact/base/fail.h"
#include "qact/image/npy.h"

namespace qact::data {
namespace {

using base::fail;
using image::NpyHeader;

template <class Number>
std::vector<int64_t> widen(base::Bytes bytes, int64_t count) {
  std::vector<int64_t> out(count);
  for (int64_t i = 0; i < count; ++i) {
    Number value;
    std::memcpy(&value, bytes.data() + i * sizeof(Number), sizeof(Number));
    out[i] = static_cast<int64_t>(value);
  }
  return out;
}

}  // namespace

std::vector<int64_t> npy_labels(base::Bytes bytes) {
  const NpyHeader header = image::parse_npy_header(bytes, static_cast<int64_t>(bytes.size()));
  if (header.shape.size() != 1) {
    fail("npy", "expected labels of 1 dimension, got ", header.shape.size());
  }
  const base::Bytes data = bytes.subspan(header.data_offset);
  const int64_t count = header.count();
  const std::string type = header.dtype.substr(1);
  if (type == "u1") return widen<uint8_t>(data, count);
  if (type == "i1") return widen<int8_t>(data, count);
  if (type == "u2") return widen<uint16_t>(data, count);
  if (type == "i2") return widen<int16_t>(data, count);
  if (type == "u4") return widen<uint32_t>(data, count);
  if (type == "i4") return widen<int32_t>(data, count);
  if (type == "u8" || type == "i8") return widen<int64_t>(data, count);
  fail("npy", "expected labels of an integer type, got ", header.dtype);
}

Split npy_images(const Blob& file) {
  const auto bytes = static_cast<int64_t>(file.bytes.size());
  const NpyHeader header = image::parse_npy_header(file.bytes, bytes);
  const size_t dimensions = header.shape.size();
  const int64_t channels = dimensions == 4 ? header.shape[3] : 1;
  if (header.dtype.substr(1) != "u1" || (dimensions != 3 && dimensions != 4) ||
      (channels != 1 && channels != 3)) {
    fail("npy", "expected images of bytes (uint8) of shape (count, height, width[, 1 or 3]), got ",
         dimensions, " dimensions, the last of ", dimensions ? header.shape.back() : 0, ", of ",
         header.dtype);
  }
  if (header.shape[0] == 0) fail("npy", "expected at least one image, got none");
  Split out;
  out.size = checked_size(header.shape[1], header.shape[2], static_cast<int>(channels));
  out.pixels = file.bytes.subspan(header.data_offset);
  out.owner = file.owner;
  return out;
}

Split read_npy_pair(const fs::path& images, const fs::path& labels, int classes) {
  const Blob pixels = map_file(images), numbers = map_file(labels);
  Split out = with_file_name(images, [&] { return npy_images(pixels); });
  out.labels = with_file_name(labels, [&] { return npy_labels(numbers.bytes); });
  out.classes = classes;
  if (classes == 0) out.classes = class_count(out.labels);
  with_file_name(labels, [&] { check_labels(out); });
  return out;
}

}  // namespace qact::data
