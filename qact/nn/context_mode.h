// Whose statistics and contexts the layers of a network work in, and what is set in all of them at
// once.
#pragma once

#include <torch/nn/module.h>

#include <optional>

namespace qact::nn {

// In eval(); train() always uses the batch's own.
enum class ContextMode {
  batch,    // the batch's own, as in training
  tracked,  // the running one: single samples work, and do not see each other
  prior,    // the running one, counted as `prior` images, blended with the batch's
  stream,   // the running one, which first moves towards the batch by `momentum`
};

// For every QuantileActivation and BatchNorm (batch_norm.h) inside `network`: the mode in eval(),
// the momentum (none: a cumulative average), and running statistics and contexts as before any
// training.
void set_context_mode(torch::nn::Module& network, ContextMode mode, double prior = 16.0);
void set_context_momentum(torch::nn::Module& network, std::optional<double> momentum);
void reset_contexts(torch::nn::Module& network);

}  // namespace qact::nn
