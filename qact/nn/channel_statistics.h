// What the layers with running statistics share.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>

namespace qact::nn {

// A stream's, where a layer's own momentum is a cumulative average.
inline constexpr double kStreamMomentum = 0.1;

inline double values_per_channel(const torch::Tensor& x) {
  return static_cast<double>(x.numel() / x.size(1));
}

// A batch over the ranks of a process group (ops/process_group.h); of an empty name, this process
// alone. Both functions are collective there.
struct BatchSize {
  double images, values;  // values per channel
};
BatchSize batch_size(const torch::Tensor& x, const std::string& group);

// The unbiased variance and the mean of each channel; of a single value, 0 and itself. The gradient
// of x is that of the sum of all ranks' losses.
std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x,
                                                           const BatchSize& size,
                                                           const std::string& group);

}  // namespace qact::nn
