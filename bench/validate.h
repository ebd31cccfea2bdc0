// What is timed is right: one training step of the layer against the oracle.
#pragma once

#include <torch/torch.h>

#include "qact/nn/quantile_activation.h"

namespace qact::bench {

// Runs one step of a new layer on all of x, as it lies in memory, and compares what it leaves with
// the oracle: of every channel the norms' own promises, of a few all values, gradients and running
// statistics. Throws a message that names shape, type, layout, term and error.
void validate(const nn::QuantileActivationOptions& options, const torch::Tensor& x);

}  // namespace qact::bench
