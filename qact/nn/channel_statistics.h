// What the layers with running statistics share.
#pragma once

#include <torch/types.h>

#include <utility>

namespace qact::nn {

// A stream's, where a layer's own momentum is a cumulative average.
inline constexpr double kStreamMomentum = 0.1;

inline double values_per_channel(const torch::Tensor& x) {
  return static_cast<double>(x.numel() / x.size(1));
}

// The unbiased variance and the mean of each channel; of a single value, 0 and itself.
std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x);

}  // namespace qact::nn
