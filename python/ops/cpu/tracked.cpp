// Inference in the running context, in one call: both norms' statistics are folded into a scale and
// a shift per channel, in the arithmetic that torch would take for it, step by step.
#include <torch/csrc/stable/library.h>

#include <cmath>
#include <vector>

#include "python/ops/execution.h"
#include "python/ops/values.h"

namespace qact::python {
namespace {

constexpr const char* kTracked = "layer_tracked";

// A norm's statistics and affine parameters; all of one type.
struct Norm {
  const MaybeTensor &mean, &var, &weight, &bias;
};

// scale * x + shift, held as numbers of that type.
struct FoldedNorm {
  std::vector<double> scale_f64, shift_f64;
  std::vector<float> scale_f32, shift_f32;
  core::ChannelVector scale, shift;
};

template <class Real>
void fold(const Norm& norm, double eps, int64_t channels, std::vector<Real>& scale,
          std::vector<Real>& shift) {
  const auto numbers = [](const MaybeTensor& v) {
    return v ? static_cast<const Real*>(v->const_data_ptr()) : nullptr;
  };
  const Real *mean = numbers(norm.mean), *var = numbers(norm.var), *weight = numbers(norm.weight),
             *bias = numbers(norm.bias);
  scale.resize(channels);
  shift.resize(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = Real{1} / std::sqrt(var[c] + static_cast<Real>(eps));
    if (weight) scale[c] *= weight[c];
    shift[c] = -mean[c] * scale[c];
    if (bias) shift[c] += bias[c];
  }
}

void check_norm(const Norm& norm, const Tensor& x) {
  STD_TORCH_CHECK(norm.mean.has_value() == norm.var.has_value(), "[", kTracked,
                  "] expected a mean and a variance, got one of the two");
  const MaybeTensor* const vectors[] = {&norm.mean, &norm.var, &norm.weight, &norm.bias};
  const char* const names[] = {"mean", "var", "weight", "bias"};
  for (int i = 0; i < 4; ++i) {
    check_channels(kTracked, names[i], *vectors[i], x);
    if (!*vectors[i]) continue;
    const ScalarType type = (*vectors[i])->scalar_type();
    STD_TORCH_CHECK((type == ScalarType::Float || type == ScalarType::Double) && norm.mean &&
                        type == norm.mean->scalar_type() && (*vectors[i])->is_contiguous(),
                    "[", kTracked, "] expected contiguous float32 or float64 vectors of one type, ",
                    "got ", describe(**vectors[i]));
  }
}

void fold_norm(const Norm& norm, double eps, const Tensor& x, FoldedNorm& out) {
  check_norm(norm, x);
  if (!norm.mean) return;
  const int64_t channels = x.size(1);
  if (norm.mean->scalar_type() == ScalarType::Double) {
    fold(norm, eps, channels, out.scale_f64, out.shift_f64);
    out.scale = {out.scale_f64.data(), true}, out.shift = {out.shift_f64.data(), true};
  } else {
    fold(norm, eps, channels, out.scale_f32, out.shift_f32);
    out.scale = {out.scale_f32.data(), false}, out.shift = {out.shift_f32.data(), false};
  }
}

Tensor layer_tracked(Tensor x, Tensor quantiles, MaybeTensor mean_in, MaybeTensor var_in,
                     MaybeTensor weight_in, MaybeTensor bias_in, MaybeTensor mean_out,
                     MaybeTensor var_out, MaybeTensor weight_out, MaybeTensor bias_out, double eps,
                     bool quantised) {
  const MaybeTensor none;
  const ApplyVectors without = {none, none, none, none};
  check_apply(kTracked, x, quantiles, without, /*bandwidth=*/1);
  check_positive(kTracked, "eps", eps);
  FoldedNorm in, out;
  fold_norm({mean_in, var_in, weight_in, bias_in}, eps, x, in);
  fold_norm({mean_out, var_out, weight_out, bias_out}, eps, x, out);
  ResultTensor y(x);
  if (x.numel() == 0) return y.take();
  const ApplyOperands operands(flatten_spatial(x), quantiles, without);
  core::QuantileApply call;
  operands.fill(call);
  call.scale = in.scale, call.shift = in.shift;
  call.out_scale = out.scale, call.out_shift = out.shift;
  call.quantised = quantised;
  call.y = y.view();
  core::quantile_apply(call, cpu_execution());
  return y.take();
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CPU, m) {
  m.impl("layer_tracked", TORCH_BOX(&layer_tracked));
}

}  // namespace qact::python
