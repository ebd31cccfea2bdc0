// The context that a value is ranked in: the batch's own, the kept one, or both.
#include "qact/nn/context_modes.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "qact/core/context.h"
#include "qact/nn/batch_norm.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/layer_track.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_apply.h"
#include "qact/ops/quantile_layer.h"

namespace qact::nn {
namespace {

using ops::maybe;

double per_channel(const torch::Tensor& x) { return static_cast<double>(x.numel() / x.size(1)); }

// What a kept context is worth after a batch of so many values. The upper end is what fixed
// point can hold; nothing weighs against it.
double worth(double values) { return std::clamp(values, core::kMinContextCount, 0x1.0p40); }

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

  torch::Tensor operator()(const torch::Tensor& x) const {
    std::vector<int64_t> shape(x.dim(), 1);
    shape[1] = x.size(1);
    return (x * scale.view(shape) + shift.view(shape)).to(x.scalar_type());
  }
};

// Calls visit(layer) for each layer with a context, itself included.
template <class Visit>
void visit_contexts(torch::nn::Module& network, Visit visit) {
  network.apply([&](torch::nn::Module& module) {
    if (auto* activation = module.as<QuantileActivation>()) visit(*activation);
    if (auto* norm = module.as<BatchNorm>()) visit(*norm);
  });
}

}  // namespace

std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x) {
  std::vector<int64_t> all_but_channels = {0};
  for (int64_t d = 2; d < x.dim(); ++d) all_but_channels.push_back(d);
  const int64_t correction = per_channel(x) > 1 ? 1 : 0;
  auto [var, mean] = torch::var_mean(x.to(ops::table_type(x)), all_but_channels, correction);
  return {var, mean};
}

void set_context_mode(torch::nn::Module& network, ContextMode mode, double prior) {
  TORCH_CHECK(std::isfinite(prior) && prior >= 0,
              "[set_context_mode] expected a finite prior >= 0, got ", prior);
  visit_contexts(network, [&](auto& layer) { layer.options.context_mode(mode).prior(prior); });
}

void set_context_momentum(torch::nn::Module& network, std::optional<double> momentum) {
  TORCH_CHECK(!momentum || (*momentum >= 0 && *momentum <= 1),
              "[set_context_momentum] expected momentum in [0, 1], got ", momentum.value_or(0));
  visit_contexts(network, [&](auto& layer) { layer.options.momentum(momentum); });
}

void reset_contexts(torch::nn::Module& network) {
  visit_contexts(network, [](auto& layer) { layer.reset_running_stats(); });
}

double QuantileActivationImpl::momentum_of_next() const {
  if (options.momentum()) return *options.momentum();
  return 1.0 / static_cast<double>(num_batches_tracked.item<int64_t>() + 1);
}

double QuantileActivationImpl::next_momentum() {
  const double momentum = momentum_of_next();
  num_batches_tracked += 1;
  return momentum;
}

void QuantileActivationImpl::keep_context(const torch::Tensor& batch, double momentum,
                                          double values) {
  values = worth(values);
  context.copy_(ops::context_blend(context, (1 - momentum) * values, batch, momentum * values));
}

torch::Tensor QuantileActivationImpl::in_batch(const torch::Tensor& x, const Call& call) {
  if (fused()) return in_batch_fused(x, call);
  TORCH_CHECK(per_channel(x) > 1 || !(options.norm_in() || options.norm_out()),
              "[QuantileActivation] expected more than one value per channel to take statistics "
              "from, got ",
              ops::describe(x));
  const double momentum = call.keep ? next_momentum() : 0;
  const auto norm = [&](const torch::Tensor& v, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& mean,
                        const torch::Tensor& var) {
    return torch::batch_norm(v, maybe(weight), maybe(bias), call.keep ? maybe(mean) : std::nullopt,
                             call.keep ? maybe(var) : std::nullopt, /*training=*/true, momentum,
                             options.eps(), /*cudnn_enabled=*/true);
  };
  const torch::Tensor z =
      options.norm_in() ? norm(x, weight_in, bias_in, running_mean_in, running_var_in) : x;
  const torch::Tensor u =
      ops::quantile_activation(z, options.levels(), options.bound(), options.positive_share(),
                               options.bandwidth(), options.algorithm(), call.quantised);
  if (call.keep) {
    torch::NoGradGuard no_grad;
    keep_context(ops::context_build(z), momentum, per_channel(x));
  }
  return options.norm_out() ? norm(u, weight_out, bias_out, running_mean_out, running_var_out) : u;
}

torch::Tensor QuantileActivationImpl::in_batch_fused(const torch::Tensor& x, const Call& call) {
  auto [y, stats, batch] = ops::quantile_layer(
      x, maybe(weight_in), maybe(bias_in), weight_out, bias_out, options.eps(), options.levels(),
      options.bound(), options.positive_share(), options.bandwidth(), options.algorithm(),
      /*track=*/call.keep);
  if (call.keep) {
    torch::NoGradGuard no_grad;
    const double n = per_channel(x);
    ops::layer_track(running_mean_in, running_var_in, running_mean_out, running_var_out, context,
                     num_batches_tracked, stats, batch, momentum_of_next(), n, worth(n));
  }
  return y;
}

torch::Tensor QuantileActivationImpl::in_kept(const torch::Tensor& x, const Call& call) {
  const torch::Tensor quantiles =
      ops::context_quantiles(context, options.levels(), options.bound(), options.positive_share());
  std::optional<torch::Tensor> scale, shift, out_scale, out_shift;
  if (options.norm_in()) {
    const Scaled in(running_mean_in, running_var_in, weight_in, bias_in, options.eps());
    scale = in.scale, shift = in.shift;
  }
  if (options.norm_out()) {
    const Scaled out(running_mean_out, running_var_out, weight_out, bias_out, options.eps());
    out_scale = out.scale, out_shift = out.shift;
  }
  return ops::quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, options.bandwidth(),
                             call.quantised);
}

// prior: the kept context is worth `prior` images against the batch's own. stream: the
// kept one moves by `momentum` and is used after that. Either way both norms are blended
// by the same shares, and each is settled before what follows it is ranked.
torch::Tensor QuantileActivationImpl::in_blend(const torch::Tensor& x, const Call& call) {
  const bool stream = options.context_mode() == ContextMode::stream, keep = stream && call.keep;
  const double images = static_cast<double>(x.size(0)), all_images = options.prior() + images;
  const double share = stream ? options.momentum().value_or(kStreamMomentum) : images / all_images;
  const double values = worth(per_channel(x) * (stream ? 1 : all_images / images));
  const auto blend = [&](torch::Tensor& running, const torch::Tensor& batch) {
    const torch::Tensor blended = torch::lerp(running, batch.to(running.scalar_type()), share);
    if (keep) running.copy_(blended.detach());
    return blended;
  };
  if (keep) num_batches_tracked += 1;
  std::optional<torch::Tensor> scale, shift;
  if (options.norm_in()) {
    const auto [var, mean] = channel_statistics(x);
    const Scaled in(blend(running_mean_in, mean), blend(running_var_in, var), weight_in, bias_in,
                    options.eps());
    scale = in.scale, shift = in.shift;
  }
  torch::Tensor quantiles;
  {
    torch::NoGradGuard no_grad;
    const torch::Tensor blended = ops::context_blend(
        context, (1 - share) * values, ops::context_build(x, scale, shift), share * values);
    if (keep) context.copy_(blended);
    quantiles = ops::context_quantiles(blended, options.levels(), options.bound(),
                                       options.positive_share());
  }
  const torch::Tensor u =
      ops::quantile_apply(x, quantiles, scale, shift, {}, {}, options.bandwidth(), call.quantised);
  if (!options.norm_out()) return u;
  const auto [var, mean] = channel_statistics(u);
  return Scaled(blend(running_mean_out, mean), blend(running_var_out, var), weight_out, bias_out,
                options.eps())(u);
}

}  // namespace qact::nn
