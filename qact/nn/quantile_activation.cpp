#include "qact/nn/quantile_activation.h"

#include <torch/nn/functional/batchnorm.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "qact/ops/border.h"
#include "qact/ops/context.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_layer.h"

namespace qact::nn {
namespace {

constexpr const char* kName = "QuantileActivation";

std::vector<int64_t> all_but_channels(const torch::Tensor& x) {
  std::vector<int64_t> dims = {0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

int64_t per_channel(const torch::Tensor& x) { return x.numel() / x.size(1); }

// The unbiased variance and the mean of each channel; of a single value, 0 and itself.
std::pair<torch::Tensor, torch::Tensor> statistics(const torch::Tensor& x) {
  const auto type = x.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  auto [var, mean] =
      torch::var_mean(x.to(type), all_but_channels(x), /*correction=*/per_channel(x) > 1 ? 1 : 0);
  return {var, mean};
}

// A norm as z = scale * x + shift, given its statistics.
struct Scaled {
  torch::Tensor scale, shift;

  Scaled(const torch::Tensor& mean, const torch::Tensor& var, const torch::Tensor& weight,
         const torch::Tensor& bias, double eps)
      : scale(weight * torch::rsqrt(var + eps)), shift(bias - mean * scale) {}
};

}  // namespace

QuantileActivationImpl::QuantileActivationImpl(QuantileActivationOptions options_)
    : options(std::move(options_)) {
  TORCH_CHECK(options.channels() > 0, "[", kName, "] expected channels > 0, got ",
              options.channels());
  const int64_t most = options.norm_in() && options.norm_out() ? 255 : 65535;
  ops::check_quantile(kName, options.levels(), options.bound(), options.positive_share(),
                      options.bandwidth(), options.algorithm(), most);
  ops::check_eps(kName, options.eps());
  TORCH_CHECK(!options.momentum() || (*options.momentum() >= 0 && *options.momentum() <= 1), "[",
              kName, "] expected momentum in [0, 1], got ", options.momentum().value_or(0));
  TORCH_CHECK(options.prior() >= 0 && std::isfinite(options.prior()), "[", kName,
              "] expected a finite prior >= 0, got ", options.prior());
  reset();
}

void QuantileActivationImpl::reset() {
  const int64_t channels = options.channels();
  if (options.norm_in()) {
    weight_in = register_parameter("weight_in", torch::ones({channels}));
    bias_in = register_parameter("bias_in", torch::zeros({channels}));
    running_mean_in = register_buffer("running_mean_in", torch::zeros({channels}));
    running_var_in = register_buffer("running_var_in", torch::ones({channels}));
  }
  if (options.norm_out()) {
    weight_out = register_parameter("weight_out", torch::ones({channels}));
    bias_out = register_parameter("bias_out", torch::zeros({channels}));
    running_mean_out = register_buffer("running_mean_out", torch::zeros({channels}));
    running_var_out = register_buffer("running_var_out", torch::ones({channels}));
  }
  context = register_buffer("context", ops::context_standard_normal(channels));
  num_batches_tracked =
      register_buffer("num_batches_tracked", torch::zeros({}, torch::dtype(torch::kLong)));
  reset_running_stats();
}

void QuantileActivationImpl::reset_running_stats() {
  torch::NoGradGuard no_grad;
  if (options.norm_in()) {
    running_mean_in.zero_();
    running_var_in.fill_(1);
  }
  if (options.norm_out()) {
    // A uniform activation, which is what an untrained layer's context promises.
    running_mean_out.fill_(0.5);
    running_var_out.fill_(1.0 / 12);
  }
  context.copy_(ops::context_standard_normal(options.channels()));
  num_batches_tracked.zero_();
}

void QuantileActivationImpl::pretty_print(std::ostream& stream) const {
  stream << "qact::nn::QuantileActivation(channels=" << options.channels()
         << ", levels=" << options.levels() << ", norm_in=" << std::boolalpha << options.norm_in()
         << ", norm_out=" << options.norm_out() << ")";
}

torch::Tensor QuantileActivationImpl::forward(const torch::Tensor& x) { return run(x, Call{}); }

torch::Tensor QuantileActivationImpl::rank(const torch::Tensor& x) {
  TORCH_CHECK(!options.norm_out(), "[", kName, "] expected norm_out to be off for rank()");
  return run(x, Call{.quantised = false, .keep = false});
}

torch::Tensor QuantileActivationImpl::run(const torch::Tensor& x, const Call& call) {
  TORCH_CHECK(x.dim() >= 2 && x.size(1) == options.channels(), "[", kName, "] expected ",
              options.channels(), " channels in dimension 1, got ", ops::describe(x));
  if (is_training()) return in_batch(x, call);
  switch (options.eval_mode()) {
    case ContextMode::batch: return in_batch(x, {call.quantised, false});
    case ContextMode::tracked: return in_kept(x, call);
    default: return in_blend(x, call);
  }
}

double QuantileActivationImpl::next_momentum() {
  num_batches_tracked += 1;
  if (options.momentum()) return *options.momentum();
  return 1.0 / static_cast<double>(num_batches_tracked.item<int64_t>());
}

void QuantileActivationImpl::keep_context(const torch::Tensor& batch, double momentum,
                                          double values) {
  context.copy_(ops::context_blend(context, (1 - momentum) * values, batch, momentum * values));
}

torch::Tensor QuantileActivationImpl::in_batch(const torch::Tensor& x, const Call& call) {
  if (options.norm_in() && options.norm_out()) return in_batch_fused(x, call);
  const double momentum = call.keep ? next_momentum() : 0;
  const auto norm = [&](const torch::Tensor& v, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& mean,
                        const torch::Tensor& var) {
    return torch::batch_norm(v, weight, bias, call.keep ? mean : torch::Tensor(),
                             call.keep ? var : torch::Tensor(), /*training=*/true, momentum,
                             options.eps(), /*cudnn_enabled=*/true);
  };
  const torch::Tensor z =
      options.norm_in() ? norm(x, weight_in, bias_in, running_mean_in, running_var_in) : x;
  const torch::Tensor u = ops::quantile_activation(
      z, options.levels(), options.bound(), options.positive_share(), options.bandwidth(),
      options.algorithm(), call.quantised);
  if (call.keep) {
    torch::NoGradGuard no_grad;
    keep_context(ops::context_build(z), momentum, static_cast<double>(per_channel(x)));
  }
  return options.norm_out() ? norm(u, weight_out, bias_out, running_mean_out, running_var_out) : u;
}

torch::Tensor QuantileActivationImpl::in_batch_fused(const torch::Tensor& x, const Call& call) {
  auto [y, stats, batch] = ops::quantile_layer(
      x, weight_in, bias_in, weight_out, bias_out, options.eps(), options.levels(),
      options.bound(), options.positive_share(), options.bandwidth(), options.algorithm(),
      /*track=*/call.keep);
  if (call.keep) {
    torch::NoGradGuard no_grad;
    const double momentum = next_momentum(), n = static_cast<double>(per_channel(x));
    const auto keep = [&, &stats = stats](torch::Tensor& running, int column, double factor) {
      running.lerp_((stats.select(1, column) * factor).to(running.scalar_type()), momentum);
    };
    const double unbiased = n / (n - 1);
    keep(running_mean_in, 0, 1);
    keep(running_var_in, 1, unbiased);
    keep(running_mean_out, 2, 1);
    keep(running_var_out, 3, unbiased);
    keep_context(batch, momentum, n);
  }
  return y;
}

torch::Tensor QuantileActivationImpl::in_kept(const torch::Tensor& x, const Call& call) {
  const torch::Tensor quantiles = ops::context_quantiles(
      context, options.levels(), options.bound(), options.positive_share());
  torch::Tensor scale, shift, out_scale, out_shift;
  if (options.norm_in()) {
    const Scaled in(running_mean_in, running_var_in, weight_in, bias_in, options.eps());
    scale = in.scale, shift = in.shift;
  }
  if (options.norm_out()) {
    const Scaled out(running_mean_out, running_var_out, weight_out, bias_out, options.eps());
    out_scale = out.scale, out_shift = out.shift;
  }
  const auto maybe = [](const torch::Tensor& t) {
    return t.defined() ? std::optional<torch::Tensor>(t) : std::nullopt;
  };
  return ops::quantile_apply(x, quantiles, maybe(scale), maybe(shift), maybe(out_scale),
                             maybe(out_shift), options.bandwidth(), call.quantised);
}

// prior: the kept context is worth `prior` images against the batch's own. stream: the
// kept one moves by `momentum` and is used after that. Either way both norms are blended
// by the same shares, and each is settled before what follows it is ranked.
torch::Tensor QuantileActivationImpl::in_blend(const torch::Tensor& x, const Call& call) {
  const bool stream = options.eval_mode() == ContextMode::stream;
  const double images = static_cast<double>(x.size(0)), values = static_cast<double>(per_channel(x));
  const bool keep = stream && call.keep;
  double batch_share = images / (options.prior() + images);
  if (stream) {
    torch::NoGradGuard no_grad;
    batch_share = options.momentum().value_or(0.1);
    if (keep) num_batches_tracked += 1;
  }
  const double total = stream ? values : values / images * (options.prior() + images);
  const auto blend = [&](torch::Tensor& running, const torch::Tensor& batch) {
    const torch::Tensor mixed = torch::lerp(running, batch.to(running.scalar_type()), batch_share);
    if (keep) {
      torch::NoGradGuard no_grad;
      running.copy_(mixed);
    }
    return mixed;
  };
  std::optional<torch::Tensor> scale, shift;
  if (options.norm_in()) {
    const auto [var, mean] = statistics(x);
    const Scaled in(blend(running_mean_in, mean), blend(running_var_in, var), weight_in, bias_in,
                    options.eps());
    scale = in.scale, shift = in.shift;
  }
  torch::Tensor quantiles;
  {
    torch::NoGradGuard no_grad;
    const torch::Tensor mixed =
        ops::context_blend(context, total * (1 - batch_share),
                           ops::context_build(x, scale, shift), total * batch_share);
    if (keep) context.copy_(mixed);
    quantiles = ops::context_quantiles(mixed, options.levels(), options.bound(),
                                       options.positive_share());
  }
  const torch::Tensor u = ops::quantile_apply(x, quantiles, scale, shift, std::nullopt,
                                              std::nullopt, options.bandwidth(), call.quantised);
  if (!options.norm_out()) return u;
  const auto [var, mean] = statistics(u);
  const torch::Tensor mixed_mean = blend(running_mean_out, mean);
  const torch::Tensor mixed_var = blend(running_var_out, var);
  return torch::batch_norm(u, weight_out, bias_out, mixed_mean.detach(), mixed_var.detach(),
                           /*training=*/false, /*momentum=*/0.0, options.eps(),
                           /*cudnn_enabled=*/true);
}

void set_context_mode(torch::nn::Module& network, ContextMode mode, double prior) {
  network.apply([&](torch::nn::Module& module) {
    if (auto* activation = module.as<QuantileActivation>()) {
      activation->options.eval_mode(mode).prior(prior);
    }
  });
}

}  // namespace qact::nn
