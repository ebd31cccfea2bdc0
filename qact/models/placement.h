// Where the activation under test goes. A network has three kinds of sites:
//
//   trunk   on what the next block reads: the stem, the residual sums, each layer of a network
//           without blocks. It belongs to the stage that made what it reads; the stem is stage 0
//   branch  inside a block, on what only that block reads
//   pooled  on the pooled features, where a network pools them
//
//   placement   trunk              branch   pooled
//   reference   all                -        yes      as the reference code has its ResNet18
//   early       stages 0 to K      -        -
//   all         all                all      yes
//
// All other sites have ReLU. Each network's file says which of its sites are which.
#pragma once

#include <torch/nn/modules/container/any.h>

#include <string>
#include <vector>

#include "qact/models/network.h"

namespace qact::models {

class Sites {
 public:
  // `stages` of the network beside the stem: the most that early_stages can be.
  Sites(const NetworkOptions& options, int64_t stages);

  torch::nn::AnyModule trunk(int64_t channels, int64_t stage) const;
  torch::nn::AnyModule branch(int64_t channels) const;
  torch::nn::AnyModule pooled(int64_t channels) const;

 private:
  enum class Placement { reference, early, all };
  static Placement parse(const std::string& name);

  torch::nn::AnyModule make(bool under_test, int64_t channels) const;

  std::string activation_;
  Placement placement_;
  int64_t early_stages_;
};

}  // namespace qact::models
