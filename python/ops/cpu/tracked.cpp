// Inference in the running context, in one call: both norms' statistics are folded into a scale and
// a shift per channel, in the arithmetic that torch would take for it, step by step. The first
// channels may be ranked in their image instead; both parts are written to one output.
#include <torch/csrc/stable/library.h>

#include <cmath>
#include <memory>
#include <vector>

#include "python/ops/execution.h"
#include "python/ops/layer.h"
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
  const auto values = [](const MaybeTensor& v) {
    return v ? static_cast<const Real*>(v->const_data_ptr()) : nullptr;
  };
  const Real *mean = values(norm.mean), *var = values(norm.var), *weight = values(norm.weight),
             *bias = values(norm.bias);
  scale.resize(channels);
  shift.resize(channels);
  for (int64_t c = 0; c < channels; ++c) {
    scale[c] = Real{1} / std::sqrt(var[c] + static_cast<Real>(eps));
    if (weight) scale[c] *= weight[c];
    shift[c] = -mean[c] * scale[c];
    if (bias) shift[c] += bias[c];
  }
}

// Of a vector that check_norm has passed.
core::ChannelVector numbers(const MaybeTensor& v) {
  if (!v) return {};
  return {v->const_data_ptr(), type_of(*v) == ScalarType::Double};
}

// Without statistics, parameters are those of channels that are ranked in their image.
void check_norm(const Norm& norm, const Tensor& x, bool in_images) {
  QACT_EXPECT(norm.mean.has_value() == norm.var.has_value(), "[", kTracked,
              "] expected a mean and a variance, got one of the two");
  const MaybeTensor* const vectors[] = {&norm.mean, &norm.var, &norm.weight, &norm.bias};
  const char* const names[] = {"mean", "var", "weight", "bias"};
  for (int i = 0; i < 4; ++i) {
    check_channels(kTracked, names[i], *vectors[i], x);
    if (!*vectors[i]) continue;
    const ScalarType type = type_of(**vectors[i]);
    QACT_EXPECT((type == ScalarType::Float || type == ScalarType::Double) &&
                    (norm.mean ? type == type_of(*norm.mean) : in_images) &&
                    (*vectors[i])->is_contiguous(),
                "[", kTracked, "] expected contiguous float32 or float64 vectors of one type, ",
                "got ", describe(**vectors[i]));
  }
}

void fold_norm(const Norm& norm, double eps, const Tensor& x, bool in_images, FoldedNorm& out) {
  check_norm(norm, x, in_images);
  if (!norm.mean) return;
  const int64_t channels = x.size(1);
  if (type_of(*norm.mean) == ScalarType::Double) {
    fold(norm, eps, channels, out.scale_f64, out.shift_f64);
    out.scale = {out.scale_f64.data(), true}, out.shift = {out.shift_f64.data(), true};
  } else {
    fold(norm, eps, channels, out.scale_f32, out.shift_f32);
    out.scale = {out.scale_f32.data(), false}, out.shift = {out.shift_f32.data(), false};
  }
}

// The first channels, each image its own context.
void rank_in_images(const core::LayerForward& whole, int64_t channels) {
  core::LayerForward call = whole;
  call.scope = {channels, 0};
  call.shape.channels = channels;
  const auto codes =  // written in any case
      std::make_unique_for_overwrite<uint8_t[]>(call.shape.context_size() * channels);
  call.code = codes.get();
  core::layer_forward(call, cpu_execution());
}

Tensor layer_tracked(const Tensor& x, const Tensor& quantiles, const MaybeTensor& mean_in,
                     const MaybeTensor& var_in, const MaybeTensor& weight_in,
                     const MaybeTensor& bias_in, const MaybeTensor& mean_out,
                     const MaybeTensor& var_out, const MaybeTensor& weight_out,
                     const MaybeTensor& bias_out, double eps, bool quantised,
                     int64_t image_channels, double bound, double positive_share,
                     int64_t algorithm) {
  check_values(kTracked, x);
  check_positive(kTracked, "eps", eps);
  core::LayerForward of_images;
  if (image_channels != 0) {
    of_images.quantile = check_layer(
        x, {weight_in, bias_in, weight_out, bias_out},
        {eps, quantiles.size(1), bound, positive_share, 1, algorithm, image_channels, 0});
  }
  const int64_t rows = x.size(1) - image_channels;
  check_given_quantiles(kTracked, x, quantiles, rows);
  FoldedNorm in, out;
  const bool in_images = image_channels > 0;
  fold_norm({mean_in, var_in, weight_in, bias_in}, eps, x, in_images, in);
  fold_norm({mean_out, var_out, weight_out, bias_out}, eps, x, in_images, out);
  ResultTensor y(x);
  if (x.numel() == 0) return y.take();
  const FlatTensor flat = flatten_spatial(x);
  if (in_images) {
    of_images.eps = eps;
    of_images.shape = flat.shape;
    of_images.x = flat.view;
    of_images.y = y.view();
    of_images.weight_in = numbers(weight_in), of_images.bias_in = numbers(bias_in);
    of_images.weight_out = numbers(weight_out), of_images.bias_out = numbers(bias_out);
    rank_in_images(of_images, image_channels);
  }
  const MaybeTensor none;
  const ApplyOperands operands(flat, quantiles, {none, none, none, none});
  core::QuantileApply call;
  operands.fill(call);
  call.shape.channels = rows;
  call.x = flat.view.from(0, image_channels);
  call.y = y.view().from(0, image_channels);
  call.scale = in.scale.from(image_channels), call.shift = in.shift.from(image_channels);
  call.out_scale = out.scale.from(image_channels), call.out_shift = out.shift.from(image_channels);
  call.quantised = quantised;
  if (rows > 0) core::quantile_apply(call, cpu_execution());
  return y.take();
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CPU, m) {
  m.impl("layer_tracked", TORCH_BOX(&layer_tracked));
}

}  // namespace qact::python
