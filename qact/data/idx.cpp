#include "qact/data/idx.h"

#include "qact/base/fail.h"

namespace qact::data {

namespace {

using base::fail;

struct Header {
  std::vector<int64_t> shape;
  size_t start = 0;     // of the values
  uint64_t values = 0;  // at most kMaxValues: the product of the sizes must not overflow
};

constexpr uint64_t kMaxValues = uint64_t{1} << 62;

std::string text_of(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t size : shape) out += (out.empty() ? "" : "x") + std::to_string(size);
  return out;
}

Header parse_header(base::Bytes bytes) {
  constexpr int kUnsignedByte = 8;
  if (bytes.size() < 4) fail("idx", "expected a magic of 4 bytes, got ", bytes.size());
  if (bytes[0] != 0 || bytes[1] != 0) {
    fail("idx", "expected a file that starts with the bytes 0 0, got ", int{bytes[0]}, " ",
         int{bytes[1]});
  }
  if (bytes[2] != kUnsignedByte) {
    fail("idx", "expected unsigned bytes (type 8), got type ", int{bytes[2]});
  }
  const int dimensions = bytes[3];
  if (dimensions != 1 && dimensions != 3) {
    fail("idx", "expected 1 or 3 dimensions, got ", dimensions);
  }
  Header out;
  out.start = 4 + 4 * static_cast<size_t>(dimensions);
  if (bytes.size() < out.start) {
    fail("idx", "expected a header of ", out.start, " bytes, got a truncated one");
  }
  out.values = 1;
  for (int d = 0; d < dimensions; ++d) {
    const uint8_t* at = &bytes[4 + 4 * d];
    const uint32_t size = uint32_t{at[0]} << 24 | at[1] << 16 | at[2] << 8 | at[3];
    out.shape.push_back(size);
    out.values = size != 0 && out.values > kMaxValues / size ? kMaxValues : out.values * size;
  }
  return out;
}

// The file, or the file.gz beside it.
fs::path plain_or_gz(const fs::path& plain) {
  const fs::path packed = plain.string() + ".gz";
  return fs::exists(plain) || !fs::exists(packed) ? plain : packed;
}

Blob read_plain_or_gz(const fs::path& path) {
  const Blob file = map_file(path);
  if (path.extension() != ".gz") return file;
  return with_file_name(path, [&] { return inflate_idx(file.bytes); });
}

}  // namespace

Blob inflate_idx(base::Bytes packed) {
  constexpr size_t kLongestHeader = 16;
  const Header header = parse_header(inflate_gzip(packed, kLongestHeader).bytes);
  // One byte more shows whether the stream is longer than announced.
  return inflate_gzip(packed, header.start + header.values + 1);
}

IdxArray parse_idx(base::Bytes bytes) {
  const Header header = parse_header(bytes);
  const size_t available = bytes.size() - header.start;
  if (header.values != available) {
    fail("idx", "expected ", text_of(header.shape), " values, got ",
         header.values > available ? "a truncated file of " + std::to_string(available) : "more");
  }
  return {header.shape, bytes.subspan(header.start)};
}

Split idx_images(const Blob& file) {
  const IdxArray array = parse_idx(file.bytes);
  if (array.shape.size() != 3) fail("idx", "expected images of 3 dimensions, got 1");
  if (array.shape[0] == 0) fail("idx", "expected at least one image, got none");
  Split out;
  out.size = checked_size(array.shape[1], array.shape[2], 1);
  out.pixels = array.values;
  out.owner = file.owner;
  return out;
}

std::vector<int64_t> idx_labels(base::Bytes file) {
  const IdxArray array = parse_idx(file);
  if (array.shape.size() != 1) fail("idx", "expected labels of 1 dimension, got 3");
  return {array.values.begin(), array.values.end()};
}

Split read_idx(const fs::path& folder, SplitName split, int classes) {
  const std::string prefix = split == SplitName::train ? "train" : "t10k";
  const fs::path images = plain_or_gz(folder / (prefix + "-images-idx3-ubyte"));
  const fs::path labels = plain_or_gz(folder / (prefix + "-labels-idx1-ubyte"));
  const Blob pixels = read_plain_or_gz(images), numbers = read_plain_or_gz(labels);
  Split out = with_file_name(images, [&] { return idx_images(pixels); });
  out.labels = with_file_name(labels, [&] { return idx_labels(numbers.bytes); });
  out.classes = classes > 0 ? classes : class_count(out.labels);
  with_file_name(labels, [&] { check_labels(out); });
  return out;
}

Source idx_source(const std::string& url, const std::vector<std::string>& md5) {
  const std::string names[] = {"train-images-idx3", "train-labels-idx1", "t10k-images-idx3",
                               "t10k-labels-idx1"};
  Source out;
  for (size_t i = 0; i < md5.size(); ++i) {
    out.downloads.push_back({url + names[i] + "-ubyte.gz", "md5:" + md5[i]});
  }
  return out;
}

}  // namespace qact::data
