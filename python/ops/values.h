// The operators on values and contexts, other than the fused layer, on any device: their checks and
// what they hand to core.
#pragma once

#include "python/ops/tensors.h"

namespace qact::python {

// The numbers of activation_forward's schema.
struct ActivationSettings {
  int64_t levels;
  double bound, positive_share, bandwidth;
  int64_t algorithm;
  bool quantised;
  int64_t density_samples, seed;
};
core::Quantile check_activation(const Tensor& x, const ActivationSettings& settings);
core::Quantile check_quantiles(const Tensor& x, int64_t levels, double bound,
                               double positive_share);

struct ApplyVectors {
  const MaybeTensor &scale, &shift, &out_scale, &out_shift;
};
// A row of 2 levels or more for each of so many channels of x.
void check_given_quantiles(const char* op, const Tensor& x, const Tensor& quantiles, int64_t rows);
void check_apply(const char* op, const Tensor& x, const Tensor& quantiles,
                 const ApplyVectors& vectors, double bandwidth);
void check_apply_backward(const char* op, const Tensor& grad_y, const Tensor& x,
                          const Tensor& quantiles, const ApplyVectors& vectors, double bandwidth);

// What both directions of quantile_apply hand to core, held while it runs.
struct ApplyOperands {
  FlatTensor x;
  Tensor quantiles;
  FlatVector scale, shift, out_scale, out_shift;

  ApplyOperands(FlatTensor flat, const Tensor& quantiles, const ApplyVectors& vectors);

  template <class Call>
  void fill(Call& call) const {
    call.levels = static_cast<int>(quantiles.size(1));
    call.shape = x.shape;
    call.x = x.view;
    call.scale = scale.vector;
    call.shift = shift.vector;
    call.out_scale = out_scale.vector;
    call.quantiles = static_cast<const double*>(quantiles.const_data_ptr());
  }
};

void check_context_build(const Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift);

// How the running context a meets the context b of a batch of so many images: with `prior` it
// counts as so many images; else it moves by `momentum`, or by 1 / (batches + 1) where there is
// none.
struct BlendArguments {
  const Tensor &a, &b;
  const MaybeTensor& batches;
  std::optional<double> prior, momentum;
  int64_t images, n;  // of the batch: images, and values per channel
};
void check_blend(const BlendArguments& arguments);
// What each counts as, if the context moves by `momentum` where there is no prior.
struct BlendCounts {
  double a, b;
};
BlendCounts blend_counts(const BlendArguments& arguments, double momentum);

}  // namespace qact::python
