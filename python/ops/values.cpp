#include "python/ops/values.h"

#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <utility>

#include "qact/core/context.h"

namespace qact::python {

core::Quantile check_activation(const Tensor& x, const ActivationSettings& settings) {
  constexpr const char* kOp = "quantile_activation";
  check_values(kOp, x);
  QACT_EXPECT(x.numel() > 0, "[", kOp, "] expected at least one value, got ", describe(x));
  QACT_EXPECT(settings.density_samples >= 0, "[", kOp, "] expected density_samples >= 0, got ",
              settings.density_samples);
  core::Quantile quantile =
      check_quantile(kOp, settings.levels, settings.bound, settings.positive_share,
                     settings.bandwidth, settings.algorithm);
  quantile.quantised = settings.quantised;
  quantile.density_samples = settings.density_samples;
  quantile.seed = static_cast<uint64_t>(settings.seed);
  return quantile;
}

core::Quantile check_quantiles(const Tensor& x, int64_t levels, double bound,
                               double positive_share) {
  constexpr const char* kOp = "quantiles";
  check_values(kOp, x);
  QACT_EXPECT(x.numel() > 0, "[", kOp, "] expected at least one value, got ", describe(x));
  return check_quantile(kOp, levels, bound, positive_share, /*bandwidth=*/1, /*algorithm=*/1);
}

void check_given_quantiles(const char* op, const Tensor& x, const Tensor& quantiles, int64_t rows) {
  check_device(op, {"quantiles", quantiles}, {"x", x});
  const ScalarType type = type_of(quantiles);
  QACT_EXPECT((type == ScalarType::Double || type == ScalarType::Float) && quantiles.dim() == 2 &&
                  quantiles.size(0) == rows && quantiles.size(1) >= 2 &&
                  quantiles.size(1) <= kMostLevels,
              "[", op, "] expected quantiles to be float32 or float64 of shape (", rows,
              ",levels) with levels in 2..", kMostLevels, ", got ", describe(quantiles));
}

void check_apply(const char* op, const Tensor& x, const Tensor& quantiles,
                 const ApplyVectors& vectors, double bandwidth) {
  check_values(op, x);
  check_given_quantiles(op, x, quantiles, x.size(1));
  check_channels(op, "scale", vectors.scale, x);
  check_channels(op, "shift", vectors.shift, x);
  check_channels(op, "out_scale", vectors.out_scale, x);
  check_channels(op, "out_shift", vectors.out_shift, x);
  check_positive(op, "bandwidth", bandwidth);
}

void check_apply_backward(const char* op, const Tensor& grad_y, const Tensor& x,
                          const Tensor& quantiles, const ApplyVectors& vectors, double bandwidth) {
  check_apply(op, x, quantiles, vectors, bandwidth);
  check_like(op, {"grad_y", grad_y}, {"x", x});
}

ApplyOperands::ApplyOperands(FlatTensor flat, const Tensor& q, const ApplyVectors& vectors)
    : x(std::move(flat)),
      quantiles(type_of(q) == ScalarType::Double ? q : torch::stable::to(q, ScalarType::Double)),
      scale(flatten_vector(vectors.scale)),
      shift(flatten_vector(vectors.shift)),
      out_scale(flatten_vector(vectors.out_scale)),
      out_shift(flatten_vector(vectors.out_shift)) {
  quantiles = as_contiguous(quantiles);
}

void check_context_build(const Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  constexpr const char* kOp = "context_build";
  check_values(kOp, x);
  check_channels(kOp, "scale", scale, x);
  check_channels(kOp, "shift", shift, x);
}

void check_blend(const BlendArguments& arguments) {
  constexpr const char* kOp = "context_blend";
  const auto& [a, b, batches, prior, momentum, images, n] = arguments;
  check_context(kOp, {"a", a});
  check_context(kOp, {"b", b});
  check_like(kOp, {"b", b}, {"a", a});
  if (batches) {
    check_device(kOp, {"batches", *batches}, {"a", a});
    QACT_EXPECT(type_of(*batches) == ScalarType::Long && batches->dim() == 0, "[", kOp,
                "] expected batches to be one int64, got ", describe(*batches));
  }
  QACT_EXPECT(images > 0 && n > 0, "[", kOp, "] expected a batch with an image, got ", images,
              " images and ", n, " values per channel");
  QACT_EXPECT(prior || momentum || batches, "[", kOp,
              "] expected prior, momentum or batches, got none");
  QACT_EXPECT(!prior || (std::isfinite(*prior) && *prior >= 0), "[", kOp,
              "] expected a finite prior >= 0, got ", prior.value_or(0));
  QACT_EXPECT(!momentum || (*momentum >= 0 && *momentum <= 1), "[", kOp,
              "] expected momentum in [0, 1], got ", momentum.value_or(0));
}

BlendCounts blend_counts(const BlendArguments& arguments, double momentum) {
  const auto images = static_cast<double>(arguments.images);
  const double all = arguments.prior.value_or(0) + images;
  const double share = arguments.prior ? images / all : momentum;
  const double values = core::effective_count(static_cast<double>(arguments.n) *
                                              (arguments.prior ? all / images : 1));
  return {(1 - share) * values, share * values};
}

}  // namespace qact::python
