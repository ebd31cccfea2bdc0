// BatchNorm with the quantile activation's choice of contexts, so that a network without any
// quantile activation gets the same chance to adapt.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <string>

#include "qact/nn/context_mode.h"

namespace qact::nn {

struct BatchNormOptions {
  /* implicit */ BatchNormOptions(int64_t num_features) : num_features_(num_features) {}

  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  // Of the running statistics; none: a cumulative average (0.1 in ContextMode::stream).
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  // In eval(); train() always uses the batch's own statistics.
  TORCH_ARG(ContextMode, context_mode) = ContextMode::tracked;
  TORCH_ARG(double, prior) = 16.0;
  TORCH_ARG(bool, relu) = false;  // after the norm
  // The name of a process group whose ranks take their statistics together, as torch's
  // SyncBatchNorm does; empty: this process alone.
  TORCH_ARG(std::string, process_group) = "";
};

// Input (B, C, ...). In train() and tracked it is torch's BatchNorm, of any dimension, bit for
// bit. batch: the batch's statistics, nothing tracked. prior, with N the prior and n the images of
// the batch: mean = N/(N+n) running + n/(N+n) batch, and so the variance, the batch's unbiased.
// stream: the running statistics first move towards the batch's by `momentum`.
//
// With a process group, the batch is that of all ranks, which may have different numbers of images,
// or none. Both passes are collective.
class BatchNormImpl : public torch::nn::Cloneable<BatchNormImpl> {
 public:
  explicit BatchNormImpl(BatchNormOptions options);

  void reset() override;
  void reset_running_stats();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x);

  BatchNormOptions options;
  torch::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  torch::Tensor normalise(const torch::Tensor& x);
  torch::Tensor in_batch(const torch::Tensor& x, bool track);
  torch::Tensor in_world(const torch::Tensor& x, bool track);
  double next_momentum() const;
  torch::Tensor in_blend(const torch::Tensor& x);
  torch::Tensor with(const torch::Tensor& x, const torch::Tensor& mean, const torch::Tensor& var);
};
TORCH_MODULE(BatchNorm);

}  // namespace qact::nn
