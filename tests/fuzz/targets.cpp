#include "tests/fuzz/targets.h"

#include <zlib.h>

#include <cstdlib>
#include <stdexcept>

#include "qact/data/cifar_binary.h"
#include "qact/data/idx.h"
#include "qact/data/npy_pair.h"
#include "qact/image/jpeg.h"
#include "qact/image/png.h"

namespace qact::fuzz {
namespace {

using base::Bytes;

void expect(bool holds) {
  if (!holds) std::abort();
}

// Reads all of it, so that a sanitizer sees where it lies.
void touch(Bytes bytes) {
  unsigned sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

template <class Reader>
void refusing(const Reader& reader) {
  try {
    reader();
  } catch (const std::runtime_error&) {
  }
}

void idx(Bytes bytes) {
  refusing([&] {
    data::Blob file{bytes, nullptr};
    if (bytes.size() > 1 && bytes[0] == 0x1f) file = data::inflate_idx(bytes);
    refusing([&] {
      const data::Split split = data::idx_images(file);
      expect(split.pixels.size() % split.size.values() == 0);
      touch(split.pixels);
    });
    expect(data::idx_labels(file.bytes).size() < file.bytes.size());
  });
}

void npy(Bytes bytes) {
  const data::Blob file{bytes, nullptr};
  refusing([&] {
    const data::Split split = data::npy_images(file);
    expect(split.pixels.size() % split.size.values() == 0);
    touch(split.pixels);
  });
  refusing([&] { expect(data::npy_labels(bytes).size() < bytes.size()); });
}

void cifar(Bytes bytes) {
  for (const data::CifarLayout layout : {data::CifarLayout{1, 10}, data::CifarLayout{2, 100}}) {
    refusing([&] {
      std::vector<uint8_t> pixels;
      std::vector<int64_t> labels;
      data::parse_cifar(bytes, layout, &pixels, &labels);
      expect(pixels.size() == labels.size() * 3072 && pixels.size() < bytes.size());
    });
  }
}

template <image::Image (*decode)(Bytes, int)>
void image(Bytes bytes) {
  refusing([&] {
    const image::Image out = decode(bytes, 0);
    expect(static_cast<int64_t>(out.pixels.size()) == out.size.values());
    touch(out.pixels);
  });
}

// Chunks are length, type, data and checksum. A changed byte seldom passes the checksum, so
// the decoder behind it is reached with the sums made right again.
std::vector<uint8_t> with_right_sums(Bytes bytes) {
  std::vector<uint8_t> out(bytes.begin(), bytes.end());
  size_t at = 8;
  while (at + 12 <= out.size()) {
    const size_t length =
        size_t{out[at]} << 24 | out[at + 1] << 16 | out[at + 2] << 8 | out[at + 3];
    if (length > out.size() - at - 12) break;
    const uLong sum = crc32(0, &out[at + 4], static_cast<uInt>(length + 4));
    for (int i = 0; i < 4; ++i)
      out[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += length + 12;
  }
  return out;
}

void png(Bytes bytes) {
  image<image::decode_png>(bytes);
  image<image::decode_png>(with_right_sums(bytes));
}

constexpr auto jpeg = image<image::decode_jpeg>;

}  // namespace

std::span<const Target> targets() {
  static const Target table[] = {
      {"idx", idx}, {"npy", npy}, {"cifar", cifar}, {"png", png}, {"jpeg", jpeg}};
  return table;
}

}  // namespace qact::fuzz
