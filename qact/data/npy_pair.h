// A pair of .npy files: images (count, height, width[, channels]) in bytes, and labels in
// any integer type.
#pragma once

#include <filesystem>

#include "qact/data/file.h"
#include "qact/data/split.h"

namespace qact::data {

// Images without labels yet; the pixels stay where they are.
Split npy_images(const Blob& file);
std::vector<int64_t> npy_labels(image::Bytes file);

// classes 0: as many as the largest label says.
Split read_npy_pair(const std::filesystem::path& images, const std::filesystem::path& labels,
                    int classes);

}  // namespace qact::data
