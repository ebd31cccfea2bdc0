#include "qact/nn/batch_norm.h"

#include <torch/types.h>

#include <ostream>

#include "qact/nn/channel_statistics.h"
#include "qact/nn/synced_batch_norm.h"
#include "qact/ops/checks.h"

namespace qact::nn {

BatchNormImpl::BatchNormImpl(BatchNormOptions options_) : options(std::move(options_)) {
  TORCH_CHECK(options.num_features() > 0, "[BatchNorm] expected num_features > 0, got ",
              options.num_features());
  reset();
}

void BatchNormImpl::reset() {
  weight = register_parameter("weight", torch::ones({options.num_features()}));
  bias = register_parameter("bias", torch::zeros({options.num_features()}));
  running_mean = register_buffer("running_mean", torch::empty({options.num_features()}));
  running_var = register_buffer("running_var", torch::empty({options.num_features()}));
  num_batches_tracked =
      register_buffer("num_batches_tracked", torch::zeros({}, torch::dtype(torch::kLong)));
  reset_running_stats();
}

void BatchNormImpl::reset_running_stats() {
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

void BatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "qact::nn::BatchNorm(" << options.num_features() << (options.relu() ? ", relu" : "")
         << ")";
}

torch::Tensor BatchNormImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() >= 2 && x.size(1) == options.num_features(), "[BatchNorm] expected ",
              options.num_features(), " channels in dimension 1, got ", ops::describe(x));
  const torch::Tensor y = normalise(x);
  return options.relu() ? torch::relu(y) : y;
}

torch::Tensor BatchNormImpl::normalise(const torch::Tensor& x) {
  if (is_training()) return in_batch(x, /*track=*/true);
  switch (options.context_mode()) {
    case ContextMode::batch:
      return in_batch(x, /*track=*/false);
    case ContextMode::tracked:
      return with(x, running_mean, running_var);
    default:
      return in_blend(x);
  }
}

double BatchNormImpl::next_momentum() const {
  return options.momentum() ? *options.momentum()
                            : 1.0 / static_cast<double>(num_batches_tracked.item<int64_t>() + 1);
}

torch::Tensor BatchNormImpl::in_batch(const torch::Tensor& x, bool track) {
  if (!options.process_group().empty()) return in_world(x, track);
  TORCH_CHECK(x.numel() > x.size(1),
              "[BatchNorm] expected more than one value per channel to take statistics from, got ",
              ops::describe(x));
  const double momentum = track ? next_momentum() : 0;
  const torch::Tensor y =
      torch::batch_norm(x, weight, bias, track ? ops::maybe(running_mean) : std::nullopt,
                        track ? ops::maybe(running_var) : std::nullopt, /*training=*/true, momentum,
                        options.eps(), /*cudnn_enabled=*/true);
  if (track) num_batches_tracked += 1;
  return y;
}

torch::Tensor BatchNormImpl::in_world(const torch::Tensor& x, bool track) {
  const auto [y, mean, var] =
      synced_batch_norm(x, weight, bias, options.eps(), options.process_group());
  if (!track) return y;
  torch::NoGradGuard no_grad;
  const double momentum = next_momentum();
  running_mean.lerp_(mean.to(running_mean), momentum);
  running_var.lerp_(var.to(running_var), momentum);
  num_batches_tracked += 1;
  return y;
}

torch::Tensor BatchNormImpl::in_blend(const torch::Tensor& x) {
  const bool stream = options.context_mode() == ContextMode::stream;
  const BatchSize size = batch_size(x, options.process_group());
  const double share = stream ? options.momentum().value_or(kStreamMomentum)
                              : size.images / (options.prior() + size.images);
  const auto [var, mean] = channel_statistics(x, size, options.process_group());
  const torch::Tensor blended_mean = torch::lerp(running_mean, mean.to(running_mean), share);
  const torch::Tensor blended_var = torch::lerp(running_var, var.to(running_var), share);
  if (stream) {
    torch::NoGradGuard no_grad;
    running_mean.copy_(blended_mean);
    running_var.copy_(blended_var);
    num_batches_tracked += 1;
  }
  return with(x, blended_mean, blended_var);
}

torch::Tensor BatchNormImpl::with(const torch::Tensor& x, const torch::Tensor& mean,
                                  const torch::Tensor& var) {
  return torch::batch_norm(x, weight, bias, mean, var, /*training=*/false, /*momentum=*/0,
                           options.eps(), /*cudnn_enabled=*/true);
}

}  // namespace qact::nn
