// Values ranked in running contexts: ContextMode::tracked, prior and stream.
#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "qact/core/context.h"
#include "qact/nn/channel_statistics.h"
#include "qact/nn/quantile_activation.h"
#include "qact/nn/running_quantiles.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/process_group.h"
#include "qact/ops/quantile_apply.h"
#include "qact/ops/quantile_layer.h"
#include "qact/ops/quantile_layer_world.h"
#include "qact/ops/tracked_halves.h"

namespace qact::nn {

using core::effective_count;
using ops::maybe;

namespace {

// A norm as scale * x + shift, given its statistics.
struct Scaled {
  torch::Tensor scale, shift;

  Scaled(const torch::Tensor& mean, const torch::Tensor& var, const torch::Tensor& weight,
         const torch::Tensor& bias, double eps)
      : scale(torch::rsqrt(var + eps)) {
    if (weight.defined()) scale = scale * weight;
    shift = -mean * scale;
    if (bias.defined()) shift = shift + bias;
  }

  torch::Tensor operator()(const torch::Tensor& x) const { return of(x, scale, shift); }

  static torch::Tensor of(const torch::Tensor& x, const torch::Tensor& scale,
                          const torch::Tensor& shift) {
    std::vector<int64_t> shape(x.dim(), 1);
    shape[1] = x.size(1);
    return (x * scale.view(shape) + shift.view(shape)).to(x.scalar_type());
  }
};

}  // namespace

// Channels whose scope is the image take the layer; the others are ranked among running quantiles.
torch::Tensor QuantileActivationImpl::in_running(const torch::Tensor& x, const Call& call) {
  const int64_t channels = x.size(1), image_channels = scope().image_channels;
  if (image_channels == channels) return in_images(x);
  const auto others = [&](const torch::Tensor& part) {
    return options.context_mode() == ContextMode::tracked ? in_tracked(part, rows(), call)
                                                          : in_blend(part, rows(), call);
  };
  if (image_channels == 0) return others(x);
  if (options.context_mode() == ContextMode::tracked && x.is_cpu() && !wants_gradient(x)) {
    return ops::tracked_halves(
        x, {maybe(weight_in), maybe(bias_in), maybe(weight_out), maybe(bias_out)},
        {.quantile = quantile(), .eps = options.eps(), .scope = {.image_channels = image_channels}},
        given_quantiles(rows()), call.quantised);
  }
  return torch::cat({in_images(x.narrow(1, 0, image_channels)),
                     others(x.narrow(1, image_channels, channels - image_channels))},
                    1);
}

// x: the channels whose scope is the image.
torch::Tensor QuantileActivationImpl::in_images(const torch::Tensor& x) {
  const int64_t channels = x.size(1);
  const auto part = [&](const torch::Tensor& vector) -> std::optional<torch::Tensor> {
    if (!vector.defined()) return std::nullopt;
    return vector.narrow(0, 0, channels);
  };
  const ops::LayerAffine affine{part(weight_in), part(bias_in), part(weight_out), part(bias_out)};
  const ops::LayerOptions layer{
      .quantile = quantile(), .eps = options.eps(), .scope = {.image_channels = channels}};
  // A rank may have no images.
  return x.size(0) > 0 ? std::get<0>(ops::quantile_layer(x, affine, layer))
                       : ops::quantile_layer_world(x, affine, layer, "").y;
}

torch::Tensor QuantileActivationImpl::in_tracked(const torch::Tensor& x, const Rows& rows,
                                                 const Call& call) {
  const auto [quantiles, scale, shift, out_scale, out_shift] = given_quantiles(rows);
  return ops::quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, options.bandwidth(),
                             call.quantised);
}

ops::GivenQuantiles QuantileActivationImpl::given_quantiles(const Rows& rows) {
  ops::GivenQuantiles out{running_quantiles_->get(rows.context, quantile())};
  if (options.norm_in()) {
    const Scaled in(rows.mean_in, rows.var_in, rows.weight_in, rows.bias_in, options.eps());
    out.scale = in.scale, out.shift = in.shift;
  }
  if (options.norm_out()) {
    const Scaled of(rows.mean_out, rows.var_out, rows.weight_out, rows.bias_out, options.eps());
    out.out_scale = of.scale, out.out_shift = of.shift;
  }
  return out;
}

bool QuantileActivationImpl::wants_gradient(const torch::Tensor& x) const {
  if (!torch::GradMode::is_enabled()) return false;
  bool wanted = x.requires_grad();
  for (const torch::Tensor* v : {&weight_in, &bias_in, &weight_out, &bias_out}) {
    wanted |= v->defined() && v->requires_grad();
  }
  return wanted;
}

// prior: the running context counts as `prior` images against the batch's own. stream: the running
// one moves by `momentum` and is used after that. Either way both norms are blended by the same
// shares, each before what follows it is ranked.
torch::Tensor QuantileActivationImpl::in_blend(const torch::Tensor& x, const Rows& rows,
                                               const Call& call) {
  const bool stream = options.context_mode() == ContextMode::stream, track = stream && call.track;
  const std::string& group = options.process_group();
  const BatchSize size = batch_size(x, group);
  const double all_images = options.prior() + size.images;
  const double share =
      stream ? options.momentum().value_or(kStreamMomentum) : size.images / all_images;
  const double values = effective_count(size.values * (stream ? 1 : all_images / size.images));
  Moves moves;
  const auto blend = [&](const torch::Tensor& running, const torch::Tensor& batch) {
    const torch::Tensor blended = torch::lerp(running, batch.to(running.scalar_type()), share);
    moves.emplace_back(running, blended.detach());
    return blended;
  };
  std::optional<torch::Tensor> scale, shift;
  if (options.norm_in()) {
    const auto [var, mean] = channel_statistics(x, size, group);
    const Scaled in(blend(rows.mean_in, mean), blend(rows.var_in, var), rows.weight_in,
                    rows.bias_in, options.eps());
    scale = in.scale, shift = in.shift;
  }
  torch::Tensor quantiles;
  {
    torch::NoGradGuard no_grad;
    const torch::Tensor batch =
        x.size(0) > 0 ? ops::context_build(x, scale, shift) : torch::zeros_like(rows.context);
    if (!group.empty()) ops::all_reduce_sum(ops::process_group("QuantileActivation", group), batch);
    const torch::Tensor blended =
        ops::context_blend(rows.context, (1 - share) * values, batch, share * values);
    moves.emplace_back(rows.context, blended);
    quantiles = ops::context_quantiles(blended, options.levels(), options.bound(),
                                       options.positive_share());
  }
  // Without images, too, it has a gradient: every rank takes part in all sums.
  const torch::Tensor u = x.size(0) > 0 ? ops::quantile_apply(x, quantiles, scale, shift, {}, {},
                                                              options.bandwidth(), call.quantised)
                                        : Scaled::of(x, *scale, *shift);
  torch::Tensor y = u;
  if (options.norm_out()) {
    const auto [var, mean] = channel_statistics(u, size, group);
    y = Scaled(blend(rows.mean_out, mean), blend(rows.var_out, var), rows.weight_out, rows.bias_out,
               options.eps())(u);
  }
  if (track) move(moves);
  return y;
}

}  // namespace qact::nn
