// MNIST's idx format: a magic that states dtype and number of dimensions, big-endian sizes, data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/data/file.h"
#include "qact/data/source.h"
#include "qact/data/split.h"

namespace qact::data {

struct IdxArray {
  std::vector<int64_t> shape;
  base::Bytes values;  // within the bytes that were parsed
};

// Unsigned bytes only: the datasets have nothing else.
IdxArray parse_idx(base::Bytes bytes);

// Unpacks a .gz: no more than the idx header announces, and one byte.
Blob inflate_idx(base::Bytes packed);

// Grey images, without labels yet; the pixels are not copied.
Split idx_images(const Blob& file);
std::vector<int64_t> idx_labels(base::Bytes file);

// Reads PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, plain or .gz; PREFIX is "train" or
// "t10k". classes 0: one more than the largest label.
Split read_idx(const std::filesystem::path& folder, SplitName split, int classes);

// MNIST's four files, each at `url` plus its name, with their MD5 digests in the order train
// images, train labels, test images, test labels.
Source idx_source(const std::string& url, const std::vector<std::string>& md5);

}  // namespace qact::data
