// CIFAR's binary format: records of one or two label bytes and three planes of 32 x 32.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/data/split.h"
#include "qact/image/codec.h"

namespace qact::data {

struct CifarLayout {
  int label_bytes = 1;  // the last of which is the class
  int classes = 10;
};

// Appends the records, pixels turned to channels last.
void parse_cifar(image::Bytes bytes, const CifarLayout& layout, std::vector<uint8_t>* pixels,
                 std::vector<int64_t>* labels);

Split read_cifar(const std::vector<std::filesystem::path>& files, const CifarLayout& layout);

// One record per image.
std::vector<uint8_t> make_cifar(const Split& split);

}  // namespace qact::data
