#include "qact/data/cifar_binary.h"

#include "qact/base/fail.h"
#include "qact/data/file.h"

namespace qact::data {
namespace {

using base::fail;

constexpr image::Size kSize = {32, 32, 3};
constexpr int kPlane = 32 * 32;

}  // namespace

void parse_cifar(base::Bytes bytes, const CifarLayout& layout, std::vector<uint8_t>* pixels,
                 std::vector<int64_t>* labels) {
  const size_t record = layout.label_bytes + kSize.values();
  if (bytes.empty() || bytes.size() % record != 0) {
    fail("cifar", "expected records of ", record, " bytes, got ", bytes.size(), " bytes");
  }
  const size_t count = bytes.size() / record;
  const size_t first = labels->size();
  pixels->resize((first + count) * kSize.values());
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = &bytes[i * record];
    const int label = from[layout.label_bytes - 1];
    if (label >= layout.classes) {
      fail("cifar", "expected labels of 0 to ", layout.classes - 1, ", got ", label, " at record ",
           i);
    }
    labels->push_back(label);
    from += layout.label_bytes;
    uint8_t* to = pixels->data() + (first + i) * kSize.values();
    for (int p = 0; p < kPlane; ++p) {
      for (int c = 0; c < 3; ++c) to[3 * p + c] = from[c * kPlane + p];
    }
  }
}

Split read_cifar(const std::vector<fs::path>& files, const CifarLayout& layout) {
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  for (const fs::path& path : files) {
    const Blob file = map_file(path);
    with_file_name(path, [&] { parse_cifar(file.bytes, layout, &pixels, &labels); });
  }
  return make_split(kSize, layout.classes, std::move(pixels), std::move(labels));
}

std::vector<uint8_t> encode_cifar(const Split& split) {
  std::vector<uint8_t> out;
  out.reserve(split.count() * (1 + kSize.values()));
  for (int64_t i = 0; i < split.count(); ++i) {
    out.push_back(static_cast<uint8_t>(split.labels[i]));
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < kPlane; ++p) out.push_back(split.image(i)[3 * p + c]);
    }
  }
  return out;
}

}  // namespace qact::data
