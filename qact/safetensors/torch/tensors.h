// Torch tensors and modules in safetensors files.
#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <string>

#include "qact/safetensors/format.h"

namespace qact::safetensors {

using Tensors = std::map<std::string, torch::Tensor>;

struct TensorFile {
  Tensors tensors;  // on the CPU; each owns its memory
  Metadata metadata;
};

TensorFile read_tensors(const std::filesystem::path& path);
// From any device and strides; the file has them contiguous.
void write_tensors(const std::filesystem::path& path, const Tensors& tensors,
                   const Metadata& metadata = {});

// Every parameter and buffer of a module by its dotted name, as Python's state_dict().
Tensors state_dict(const torch::nn::Module& module);

// Copies `state` into the module. Throws, and leaves the module as it was, unless both have the
// same names, dtypes and shapes; the message names the tensor and `source`, where the state is
// from.
void load_state_dict(torch::nn::Module& module, const Tensors& state, const std::string& source);

}  // namespace qact::safetensors
