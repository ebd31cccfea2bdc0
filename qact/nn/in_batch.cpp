// Values ranked in the batch itself: training, and ContextMode::batch.
#include <torch/types.h>

#include <optional>
#include <utility>

#include "qact/core/context.h"
#include "qact/nn/channel_statistics.h"
#include "qact/nn/quantile_activation.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/describe.h"
#include "qact/ops/layer_track.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_layer.h"
#include "qact/ops/quantile_layer_world.h"

namespace qact::nn {

using core::effective_count;
using ops::maybe;

double QuantileActivationImpl::momentum_of_next() const {
  if (options.momentum()) return *options.momentum();
  return 1.0 / static_cast<double>(num_batches_tracked.item<int64_t>() + 1);
}

torch::Tensor QuantileActivationImpl::in_batch(const torch::Tensor& x, const Call& call) {
  if (fused()) return in_batch_fused(x, call);
  TORCH_CHECK(values_per_channel(x) > 1 || !(options.norm_in() || options.norm_out()),
              "[QuantileActivation] expected more than one value per channel to take statistics "
              "from, got ",
              ops::describe(x));
  const double momentum = call.track ? momentum_of_next() : 0;
  Moves moves;
  const auto norm = [&](const torch::Tensor& v, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& mean,
                        const torch::Tensor& var) {
    std::optional<torch::Tensor> next_mean, next_var;
    if (call.track) {
      next_mean = mean.clone(), next_var = var.clone();
      moves.emplace_back(mean, *next_mean);
      moves.emplace_back(var, *next_var);
    }
    return torch::batch_norm(v, maybe(weight), maybe(bias), next_mean, next_var, /*training=*/true,
                             momentum, options.eps(), /*cudnn_enabled=*/true);
  };
  const torch::Tensor z =
      options.norm_in() ? norm(x, weight_in, bias_in, running_mean_in, running_var_in) : x;
  const torch::Tensor u =
      ops::quantile_activation(z, {.quantile = quantile(), .quantised = call.quantised});
  const torch::Tensor y =
      options.norm_out() ? norm(u, weight_out, bias_out, running_mean_out, running_var_out) : u;
  if (call.track) {
    torch::NoGradGuard no_grad;
    const double values = effective_count(values_per_channel(x));
    moves.emplace_back(context, ops::context_blend(context, (1 - momentum) * values,
                                                   ops::context_build(z), momentum * values));
    move(moves);
  }
  return y;
}

void QuantileActivationImpl::move(const Moves& moves) {
  for (const auto& [running, moved] : moves) running.copy_(moved);
  num_batches_tracked += 1;
}

torch::Tensor QuantileActivationImpl::in_batch_fused(const torch::Tensor& x, const Call& call) {
  if (options.scope() == Scope::world || x.size(0) == 0) return in_world(x, call);
  const core::Scope in = scope();
  auto [y, stats, batch] = ops::quantile_layer(
      x, {maybe(weight_in), maybe(bias_in), weight_out, bias_out},
      {.quantile = quantile(), .eps = options.eps(), .track = call.track, .scope = in});
  if (!call.track) return y;
  const double n = values_per_channel(x);
  const double share =
      static_cast<double>(in.images_of(x.size(0))) / static_cast<double>(x.size(0));
  track(stats, batch, share * n, n);
  return y;
}

torch::Tensor QuantileActivationImpl::in_world(const torch::Tensor& x, const Call& call) {
  const auto [y, stats, batch, values] = ops::quantile_layer_world(
      x, {maybe(weight_in), maybe(bias_in), weight_out, bias_out},
      {.quantile = quantile(), .eps = options.eps(), .track = call.track, .scope = scope()},
      options.process_group());
  if (!call.track) return y;
  const double n = static_cast<double>(values.item<int64_t>());
  track(stats, batch, n, n);
  return y;
}

// After a batch of so many values per channel, whose statistics are those of contexts of `share`.
void QuantileActivationImpl::track(const torch::Tensor& stats, const torch::Tensor& batch,
                                   double share, double values) {
  torch::NoGradGuard no_grad;
  const Rows to = rows();
  if (to.context.size(0) == 0) {
    num_batches_tracked += 1;
    return;
  }
  ops::layer_track(
      {to.mean_in, to.var_in, to.mean_out, to.var_out, to.context, num_batches_tracked},
      {stats, batch, momentum_of_next(), share, effective_count(values)});
}

}  // namespace qact::nn
