// What tells damage to a file of tensors.
#pragma once

#include <string>

#include "qact/safetensors/torch/tensors.h"

namespace qact::train {

// The metadata that holds checksum().
inline constexpr const char* kChecksum = "qact.checksum";

// Of the names, the values and a text of the metadata. The tensors are on the CPU and contiguous.
std::string checksum(const safetensors::Tensors& tensors, const std::string& text);

// Throws where the file, which is called `source`, has another checksum.
void check_checksum(const safetensors::TensorFile& file, const std::string& text,
                    const std::string& source);

}  // namespace qact::train
