// Values ranked in the batch itself: training, and ContextMode::batch.
#include <torch/types.h>

#include <optional>

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

double QuantileActivationImpl::next_momentum() {
  const double momentum = momentum_of_next();
  num_batches_tracked += 1;
  return momentum;
}

void QuantileActivationImpl::update_context(const torch::Tensor& batch, double momentum,
                                            double values) {
  values = effective_count(values);
  context.copy_(ops::context_blend(context, (1 - momentum) * values, batch, momentum * values));
}

torch::Tensor QuantileActivationImpl::in_batch(const torch::Tensor& x, const Call& call) {
  if (fused()) return in_batch_fused(x, call);
  TORCH_CHECK(values_per_channel(x) > 1 || !(options.norm_in() || options.norm_out()),
              "[QuantileActivation] expected more than one value per channel to take statistics "
              "from, got ",
              ops::describe(x));
  const double momentum = call.track ? next_momentum() : 0;
  const auto norm = [&](const torch::Tensor& v, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& mean,
                        const torch::Tensor& var) {
    return torch::batch_norm(v, maybe(weight), maybe(bias), call.track ? maybe(mean) : std::nullopt,
                             call.track ? maybe(var) : std::nullopt, /*training=*/true, momentum,
                             options.eps(), /*cudnn_enabled=*/true);
  };
  const torch::Tensor z =
      options.norm_in() ? norm(x, weight_in, bias_in, running_mean_in, running_var_in) : x;
  const torch::Tensor u =
      ops::quantile_activation(z, {.quantile = quantile(), .quantised = call.quantised});
  if (call.track) {
    torch::NoGradGuard no_grad;
    update_context(ops::context_build(z), momentum, values_per_channel(x));
  }
  return options.norm_out() ? norm(u, weight_out, bias_out, running_mean_out, running_var_out) : u;
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
