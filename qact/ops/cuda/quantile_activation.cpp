#include "qact/ops/quantile_activation.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "qact/ops/cuda/operands.h"
#include "qact/ops/quantile_activation_impl.h"

namespace qact::ops {
namespace {

constexpr int64_t kMostKernelLevels = 255;

// (C, n): each channel's values side by side.
at::Tensor by_channel(const at::Tensor& x) {
  return x.movedim(1, 0).reshape({x.size(1), -1}).contiguous();
}
at::Tensor from_channels(const at::Tensor& rows, const at::Tensor& like) {
  std::vector<int64_t> shape = like.sizes().vec();
  std::swap(shape[0], shape[1]);
  at::Tensor out = at::empty_like(like);
  return out.copy_(rows.reshape(shape).transpose(0, 1));
}

// A sorted context in double: NaN at the end as +infinity, which no finite value reaches.
struct Sorted {
  at::Tensor values;     // (C, n)
  at::Tensor size;       // (C, 1), without NaN
  at::Tensor negatives;  // (C, 1)

  explicit Sorted(const at::Tensor& rows) {
    const at::Tensor nans = rows.isnan();
    const double inf = std::numeric_limits<double>::infinity();
    values = std::get<0>(rows.to(at::kDouble).masked_fill(nans, inf).sort(1));
    size = (rows.size(1) - nans.sum(1, true)).to(at::kDouble);
    negatives = (rows < 0).sum(1, true).to(at::kDouble);
  }
};

// The cumulative weight F(x) of members x, (C, n), by their ranks; see core/levels.h.
at::Tensor cumulative(const Sorted& context, const at::Tensor& x, const core::Quantile& quantile) {
  const at::Tensor positive = ~(x < 0);
  const at::Tensor below =
      at::minimum(at::searchsorted(context.values, x, false, true).to(at::kDouble), context.size);
  const double p = quantile.positive_share;
  const at::Tensor minus =
      (1 - p) / (context.negatives + 1) * (below + (x >= -quantile.bound).to(at::kDouble));
  const at::Tensor plus =
      (1 - p) + p / (context.size - context.negatives + 1) *
                    (below - context.negatives + (x >= quantile.bound).to(at::kDouble));
  return at::where(positive, plus, minus);
}

// Ranks by sorting: more levels than a kernel's byte, or none at all.
at::Tensor by_sorting(const at::Tensor& x, const core::Quantile& quantile) {
  const at::Tensor rows = by_channel(x).to(at::kDouble);
  const at::Tensor share = cumulative(Sorted(rows), rows, quantile);
  at::Tensor y = share;
  if (quantile.quantised) {
    constexpr double kSlack = 1e-9;
    y = ((quantile.levels + 1) * share + kSlack).floor().clamp_max(quantile.levels) /
        static_cast<double>(quantile.levels);
  }
  return from_channels(at::where(rows.isnan(), rows, y), x);
}

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, const ActivationOptions& options,
                                           bool need_density) {
  constexpr const char* kOp = "quantile_activation";
  core::ActivationForward call;
  call.quantile = check_activation(x, options);
  TORCH_CHECK(options.density_samples == 0, "[", kOp,
              "] expected density_samples = 0 on CUDA, where the whole context is used, got ",
              options.density_samples);
  check_computed(kOp, x);
  const c10::cuda::CUDAGuard guard(x.device());
  const FlatTensor in = flatten_readable(x);
  const CudaResult y(x, in);
  std::optional<CudaResult> density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  if (need_density) call.density = density.emplace(x, in).view();
  const int64_t levels = options.quantile.levels;
  const bool sorts = levels > kMostKernelLevels || !options.quantised;
  if (!sorts || need_density) {
    core::ActivationForward kernels = call;
    kernels.quantile.levels = static_cast<int>(std::min(levels, kMostKernelLevels));
    const CudaStream on = cuda_stream(x, core::cuda::activation_forward_scratch(kernels));
    core::cuda::activation_forward(kernels, on.stream);
  }
  call.quantile.quantised = options.quantised;
  return {sorts ? by_sorting(x, call.quantile) : y.take(),
          density ? density->take() : at::empty({0}, x.options())};
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& density) {
  check_activation_backward(grad, density);
  const c10::cuda::CUDAGuard guard(grad.device());
  at::Tensor out = at::empty_like(grad);
  return at::where_out(out, density == 0, at::zeros({}, grad.options()), grad * density);
}

// q_1..q_levels by linear interpolation on the cumulative weights of the sorted context
// with both bounds in place.
at::Tensor exact_quantiles(const at::Tensor& x, int64_t levels, double bound,
                           double positive_share) {
  check_quantiles(x, levels, bound, positive_share);
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor rows = by_channel(x).to(at::kDouble);
  const at::Tensor ends = at::stack(
      {at::full({x.size(1)}, -bound, rows.options()), at::full({x.size(1)}, bound, rows.options())},
      1);
  const Sorted context(at::cat({rows, ends}, 1));
  const at::Tensor valid =
      at::arange(context.values.size(1), rows.options()).unsqueeze(0) < context.size;
  const at::Tensor negative = (context.values < 0) & valid;
  const at::Tensor weight = at::where(negative, (1 - positive_share) / context.negatives,
                                      positive_share / (context.size - context.negatives));
  const at::Tensor weights = at::where(valid, weight, 0.0).cumsum(1);
  const at::Tensor tau = (at::arange(1, levels + 1, rows.options()) / (levels + 1.0))
                             .unsqueeze(0)
                             .expand({x.size(1), levels})
                             .contiguous();
  constexpr double kSlack = 1e-12;  // a tau that a sum of weights reaches but for rounding
  const at::Tensor last = (context.size - 1).to(at::kLong);
  const at::Tensor high =
      at::minimum(at::searchsorted(weights, tau - kSlack), last.expand({x.size(1), levels}));
  const at::Tensor low = (high - 1).clamp_min(0);
  const at::Tensor q1 = context.values.gather(1, high), q0 = context.values.gather(1, low);
  const at::Tensor w1 = weights.gather(1, high), w0 = weights.gather(1, low);
  const at::Tensor t = ((tau - w0) / (w1 - w0)).clamp(0, 1);
  const at::Tensor between = q0 * (1 - t) + q1 * t;
  const at::Tensor plain = (high > 0) & q0.isfinite() & q1.isfinite() & (w1 > w0);
  return at::where(plain, between, q1).to(table_type(x));
}

at::Tensor autocast(const at::Tensor& x, const ActivationOptions& options) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCUDA);
  const at::ScalarType type = at::autocast::get_autocast_dtype(at::kCUDA);
  return quantile_activation(at::autocast::cached_cast(type, x, c10::DeviceType::CUDA), options);
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("_quantile_activation_forward", activation_entry<forward, bool>);
  m.impl("_quantile_activation_backward", backward);
  m.impl("quantiles", exact_quantiles);
}

TORCH_LIBRARY_IMPL(qact, AutocastCUDA, m) {
  m.impl("quantile_activation", activation_entry<autocast>);
}

}  // namespace qact::ops
