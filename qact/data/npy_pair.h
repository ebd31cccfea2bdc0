// A pair of .npy files: images (count, height, width[, channels]) of dtype uint8, and labels of any
// integer dtype.
#pragma once

#include <filesystem>

#include "qact/data/file.h"
#include "qact/data/split.h"

namespace qact::data {

// Images, without labels yet; the pixels are not copied.
Split npy_images(const Blob& file);
std::vector<int64_t> npy_labels(base::Bytes file);

// classes 0: one more than the largest label.
Split read_npy_pair(const std::filesystem::path& images, const std::filesystem::path& labels,
                    int classes);

}  // namespace qact::data
