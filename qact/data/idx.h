// MNIST's format: a magic that names type and number of dimensions, big-endian sizes, data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/data/file.h"
#include "qact/data/split.h"

namespace qact::data {

struct IdxArray {
  std::vector<int64_t> shape;
  image::Bytes values;  // within the bytes that were parsed
};

// Unsigned bytes only: all that the sets consist of.
IdxArray parse_idx(image::Bytes bytes);

// Of a .gz no more than its header speaks of, and a byte.
Blob inflate_idx(image::Bytes packed);

// Grey images without labels yet; the pixels stay where they are.
Split idx_images(const Blob& file);
std::vector<int64_t> idx_labels(image::Bytes file);

// PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, plain or .gz; prefix "train" or
// "t10k". classes 0: as many as the largest label says.
Split read_idx(const std::filesystem::path& folder, Part part, int classes);

}  // namespace qact::data
