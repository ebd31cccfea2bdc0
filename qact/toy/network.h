// The networks of the toy experiment: one architecture per problem, with an activation under test.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <span>
#include <string>

#include "qact/base/random.h"

namespace qact::toy {

struct ToyNetwork {
  const char* problem;
  const char* name;
  const char* label;  // for tables and charts
  torch::nn::Sequential (*make)(int64_t width);
};

// In the order of the printed table and the report. Every network uses the batch's own statistics
// in train() and in eval().
std::span<const ToyNetwork> toy_networks();

// Initialises linear layers as torch does, but from `random`: torch has one generator for the whole
// process, and networks are trained on many threads.
void initialise(torch::nn::Sequential& network, base::Random& random);

}  // namespace qact::toy
