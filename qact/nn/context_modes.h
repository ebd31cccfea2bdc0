// What the layers with a context share, and what is set in all of them at once.
#pragma once

#include <torch/nn/module.h>

#include <optional>
#include <utility>

#include "qact/nn/quantile_activation.h"

namespace qact::nn {

// A stream's, where a layer's own momentum is a cumulative average.
inline constexpr double kStreamMomentum = 0.1;

// The unbiased variance and the mean of each channel; of a single value, 0 and itself.
std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x);

// For every quantile activation and BatchNorm inside `network`: the momentum (none: a
// cumulative average), and statistics and contexts as before any training.
void set_context_momentum(torch::nn::Module& network, std::optional<double> momentum);
void reset_contexts(torch::nn::Module& network);

}  // namespace qact::nn
