// Which activations of a network are the one under test. An activation's site is of three kinds:
//
//   trunk   its output is what the next block reads: after the stem, after the residual sums, and
//           after each layer of a network without blocks. It belongs to the stage that made its
//           input; the stem is stage 0
//   branch  inside a block of stage 1 or later: only that block reads its output
//   pooled  on the pooled features, in networks that pool them
//
//   placement   trunk              branch           pooled
//   reference   all                -                yes      as the paper's code has in ResNet18
//   early       stages 0 to K      -                -
//   split       stages 0 to K      stages 1 to K    -        convolutional stages alone
//   all         all                all              yes
//
// In `split` QAct ranks the first channels, a share of image_share, in their image and the others
// in the batch. All other sites have ReLU. NetworkOptions::sites overrides single sites. The
// comment at the top of each network's file lists its sites.
#pragma once

#include <torch/nn/modules/container/any.h>

#include <map>
#include <string>

#include "qact/models/network.h"
#include "qact/models/site_list.h"

namespace qact::models {

// Makes the activation for each site of a network.
class Placement {
 public:
  Placement(const NetworkOptions& options, const Sites& sites);

  torch::nn::AnyModule trunk(int64_t channels, int64_t stage) const;
  torch::nn::AnyModule branch(int64_t channels, int64_t stage) const;
  torch::nn::AnyModule pooled(int64_t channels) const;

 private:
  enum class Kind { reference, early, split, all };
  static Kind parse(const std::string& name);
  void check_stages(int64_t stages) const;
  bool is_early(int64_t stage) const { return stage <= early_stages_; }

  torch::nn::AnyModule make(const std::string& site, bool under_test, int64_t channels,
                            bool convolutional) const;

  std::string activation_;
  Kind kind_;
  int64_t early_stages_;
  double image_share_;
  Sites sites_;
  std::map<std::string, std::string> chosen_;  // by NetworkOptions::sites
};

}  // namespace qact::models
