// The networks of the toy experiment: one body per problem, with an activation under test.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <span>
#include <string>

#include "qact/base/random.h"

namespace qact::toy {

struct ToyNetwork {
  const char* problem;
  const char* name;
  const char* label;
  torch::nn::Sequential (*make)(int64_t width);
};

// In the order of the table and the page. Every network uses the batch's own statistics
// in training and in evaluation alike.
std::span<const ToyNetwork> toy_networks();

// Linear layers as torch starts them, but from `random`: torch's own numbers come from one
// generator for the whole process.
void initialise(torch::nn::Sequential& network, base::Random& random);

}  // namespace qact::toy
