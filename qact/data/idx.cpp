#include "qact/data/idx.h"

#include "qact/image/fail.h"

namespace qact::data {

using image::fail;

IdxArray parse_idx(image::Bytes bytes) {
  constexpr int kUnsignedByte = 8;
  if (bytes.size() < 4) fail("idx", "expected a magic of 4 bytes, got ", bytes.size());
  if (bytes[0] != 0 || bytes[1] != 0) fail("idx", "expected a magic of 0 0, got another");
  if (bytes[2] != kUnsignedByte) {
    fail("idx", "expected unsigned bytes (type 8), got type ", int{bytes[2]});
  }
  const int dimensions = bytes[3];
  if (dimensions != 1 && dimensions != 3) {
    fail("idx", "expected 1 or 3 dimensions, got ", dimensions);
  }
  const size_t start = 4 + 4 * static_cast<size_t>(dimensions);
  if (bytes.size() < start)
    fail("idx", "expected a header of ", start, " bytes, got a truncated one");
  IdxArray out;
  const size_t room = bytes.size() - start;
  uint64_t values = 1;
  for (int d = 0; d < dimensions; ++d) {
    const uint8_t* at = &bytes[4 + 4 * d];
    const uint32_t size = uint32_t{at[0]} << 24 | at[1] << 16 | at[2] << 8 | at[3];
    out.shape.push_back(size);
    // Sizes are below 2^32 and the file below 2^63: saturate, lest the product wrap.
    values = size != 0 && values > room / size ? room + 1 : values * size;
  }
  if (values != room) {
    fail("idx", "expected as many values as the sizes say, got ",
         values > room ? "a truncated file" : "more bytes", " (", room, " bytes of data)");
  }
  out.values = bytes.subspan(start);
  return out;
}

Split idx_images(const Blob& file) {
  const IdxArray array = parse_idx(file.bytes);
  if (array.shape.size() != 3) fail("idx", "expected images of 3 dimensions, got 1");
  Split out;
  out.size = checked_size(array.shape[1], array.shape[2], 1);
  out.pixels = array.values;
  out.keep = file.keep;
  return out;
}

std::vector<int64_t> idx_labels(image::Bytes file) {
  const IdxArray array = parse_idx(file);
  if (array.shape.size() != 1) fail("idx", "expected labels of 1 dimension, got 3");
  return {array.values.begin(), array.values.end()};
}

Split read_idx(const fs::path& folder, Part part, int classes) {
  const std::string prefix = part == Part::kTrain ? "train" : "t10k";
  const std::string images = prefix + "-images-idx3-ubyte", labels = prefix + "-labels-idx1-ubyte";
  const Blob pictures = read_plain_or_gzip(folder, images);
  const Blob numbers = read_plain_or_gzip(folder, labels);
  Split out = naming(folder / images, [&] { return idx_images(pictures); });
  out.labels = naming(folder / labels, [&] { return idx_labels(numbers.bytes); });
  out.classes = classes > 0 ? classes : classes_of(out.labels);
  naming(folder / labels, [&] { check_labels(out); });
  return out;
}

}  // namespace qact::data
