// Which activations of a network are the one under test. An activation's site is of three kinds:
//
//   trunk   its output is what the next block reads: after the stem, after the residual sums, and
//           after each layer of a network without blocks. It belongs to the stage that made its
//           input; the stem is stage 0
//   branch  inside a block: only that block reads its output
//   pooled  on the pooled features, in networks that pool them
//
//   placement   trunk              branch   pooled
//   reference   all                -        yes      as the paper's code has in ResNet18
//   early       stages 0 to K      -        -
//   all         all                all      yes
//
// All other sites have ReLU. The comment at the top of each network's file lists its sites.
#pragma once

#include <torch/nn/modules/container/any.h>

#include <string>
#include <vector>

#include "qact/models/network.h"

namespace qact::models {

// Makes the activation for each site of a network.
class Placement {
 public:
  // `stages`: how many the network has beside the stem, the largest early_stages.
  Placement(const NetworkOptions& options, int64_t stages);

  torch::nn::AnyModule trunk(int64_t channels, int64_t stage) const;
  torch::nn::AnyModule branch(int64_t channels) const;
  torch::nn::AnyModule pooled(int64_t channels) const;

 private:
  enum class Kind { reference, early, all };
  static Kind parse(const std::string& name);

  torch::nn::AnyModule make(bool under_test, int64_t channels) const;

  std::string activation_;
  Kind kind_;
  int64_t early_stages_;
};

}  // namespace qact::models
