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
  Tensors tensors;  // on the CPU, sharing no memory
  Metadata metadata;
};

TensorFile read_tensors(const std::filesystem::path& path);
// From any device and layout; the file holds them in C order.
void write_tensors(const std::filesystem::path& path, const Tensors& tensors,
                   const Metadata& metadata = {});

// Every parameter and buffer of a module by its dotted name, as Python's state_dict has them.
Tensors state_of(const torch::nn::Module& module);

// Copies `state` into the module. Each name on both sides, each with the module's type and
// shape: otherwise throws, naming the tensor, and leaves the module as it was. `source` is
// where the state is from, for the message.
void load_state(torch::nn::Module& module, const Tensors& state, const std::string& source);

}  // namespace qact::safetensors
