// CIFAR's binary format: records of one or two label bytes and an image of 3 x 32 x 32 (CHW).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/base/bytes.h"
#include "qact/data/split.h"

namespace qact::data {

struct CifarLayout {
  int label_bytes = 1;  // the last of which is the class
  int classes = 10;
};

// Appends the records, pixels converted to channels last.
void parse_cifar(base::Bytes bytes, const CifarLayout& layout, std::vector<uint8_t>* pixels,
                 std::vector<int64_t>* labels);

Split read_cifar(const std::vector<std::filesystem::path>& files, const CifarLayout& layout);

// The format with one label byte.
std::vector<uint8_t> encode_cifar(const Split& split);

}  // namespace qact::data
