#include "qact/nn/quantile_activation.h"

#include <ATen/record_function.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "qact/core/context.h"
#include "qact/nn/channel_statistics.h"
#include "qact/nn/running_quantiles.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/layer_track.h"
#include "qact/ops/process_group.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_apply.h"
#include "qact/ops/quantile_layer.h"
#include "qact/ops/quantile_layer_world.h"

namespace qact::nn {
namespace {

using ops::maybe;

constexpr const char* kName = "QuantileActivation";

// Of a running context after a batch of so many values. The upper end is what fixed point can hold;
// nothing weighs against it.
double effective_count(double values) {
  return std::clamp(values, core::kMinContextCount, 0x1.0p40);
}

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

void check_scope(const QuantileActivationOptions& options) {
  const double share = options.image_share();
  TORCH_CHECK(share >= 0 && share <= 1, "[", kName, "] expected image_share in [0, 1], got ",
              share);
  const bool grouped = options.scope() == Scope::group;
  TORCH_CHECK(grouped ? options.group_images() > 0 : options.group_images() == 0, "[", kName,
              "] expected group_images > 0 with the scope group, and 0 with others, got ",
              options.group_images());
  TORCH_CHECK(options.scope() == Scope::world || options.process_group().empty(), "[", kName,
              "] expected a process_group with the scope world alone, got '",
              options.process_group(), "'");
  const bool norms = options.norm_in() && options.norm_out();
  TORCH_CHECK(norms || (options.scope() == Scope::batch && share == 0), "[", kName,
              "] expected norm_in and norm_out with a scope other than batch, got norm_in ",
              options.norm_in(), ", norm_out ", options.norm_out());
}

}  // namespace

QuantileActivationImpl::QuantileActivationImpl(QuantileActivationOptions options_)
    : options(std::move(options_)) {
  TORCH_CHECK(options.num_features() > 0, "[", kName, "] expected num_features > 0, got ",
              options.num_features());
  ops::check_quantile(kName, quantile(), fused() ? ops::kMostLayerLevels : ops::kMostLevels);
  ops::check_positive(kName, "eps", options.eps());
  const std::optional<double> momentum = options.momentum();
  TORCH_CHECK(!momentum || (*momentum >= 0 && *momentum <= 1), "[", kName,
              "] expected momentum in [0, 1], got ", momentum.value_or(0));
  TORCH_CHECK(std::isfinite(options.prior()) && options.prior() >= 0, "[", kName,
              "] expected a finite prior >= 0, got ", options.prior());
  check_scope(options);
  reset();
}

void QuantileActivationImpl::reset() {
  running_quantiles_ = std::make_shared<RunningQuantiles>();
  const int64_t channels = options.num_features();
  if (options.norm_in()) {
    if (options.affine_in()) {
      weight_in = register_parameter("weight_in", torch::ones({channels}));
      bias_in = register_parameter("bias_in", torch::zeros({channels}));
    }
    running_mean_in = register_buffer("running_mean_in", torch::empty({channels}));
    running_var_in = register_buffer("running_var_in", torch::empty({channels}));
  }
  if (options.norm_out()) {
    weight_out = register_parameter("weight_out", torch::ones({channels}));
    bias_out = register_parameter("bias_out", torch::zeros({channels}));
    running_mean_out = register_buffer("running_mean_out", torch::empty({channels}));
    running_var_out = register_buffer("running_var_out", torch::empty({channels}));
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
  context.copy_(ops::context_standard_normal(options.num_features()));
  num_batches_tracked.zero_();
}

void QuantileActivationImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  const torch::Tensor counts = context.detach().to(device, non_blocking);
  const torch::Tensor batches = num_batches_tracked.detach().to(device, non_blocking);
  Module::to(device, dtype, non_blocking);
  context.set_data(counts);
  num_batches_tracked.set_data(batches);
}

void QuantileActivationImpl::to(torch::Dtype dtype, bool non_blocking) {
  to(context.device(), dtype, non_blocking);
}

void QuantileActivationImpl::pretty_print(std::ostream& stream) const {
  stream << "qact::nn::QuantileActivation(num_features=" << options.num_features()
         << ", levels=" << options.levels() << ", norm_in=" << std::boolalpha << options.norm_in()
         << ", norm_out=" << options.norm_out();
  if (options.scope() == Scope::image) stream << ", scope=image";
  if (options.scope() == Scope::group) stream << ", scope=group of " << options.group_images();
  if (options.scope() == Scope::world) stream << ", scope=world";
  if (options.image_share() > 0) stream << ", image_share=" << options.image_share();
  stream << ")";
}

// Told to torch's observers as one operation, whichever operators the context mode takes for it:
// from the layer's input to what the next layer reads.
torch::Tensor QuantileActivationImpl::forward(const torch::Tensor& x) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  if (!record.isActive()) return run(x, Call{});
  const c10::IValue input(x);
  record.before(kOperatorName, c10::ArrayRef<const c10::IValue>(input));
  torch::Tensor y = run(x, Call{});
  if (record.needsOutputs()) record.setOutputs(std::vector<c10::IValue>{y});
  return y;
}

torch::Tensor QuantileActivationImpl::rank(const torch::Tensor& x, bool track) {
  TORCH_CHECK(!options.norm_out(), "[", kName, "] expected norm_out to be off for rank()");
  return run(x, Call{.quantised = false, .track = track});
}

torch::Tensor QuantileActivationImpl::run(const torch::Tensor& x, const Call& call) {
  // A rank may have no images; whether all ranks have none, the operator sees.
  const bool of_no_images = x.dim() > 1 && x.size(0) == 0 &&
                            (options.scope() == Scope::world || options.scope() == Scope::image);
  if (!of_no_images) ops::check_values(kName, x);
  TORCH_CHECK(x.size(1) == options.num_features(), "[", kName, "] expected ",
              options.num_features(), " channels in dimension 1, got ", ops::describe(x));
  if (is_training()) return in_batch(x, call);
  switch (options.context_mode()) {
    case ContextMode::batch:
      return in_batch(x, {call.quantised, /*track=*/false});
    default:
      return in_running(x, call);
  }
}

ops::QuantileOptions QuantileActivationImpl::quantile() const {
  return {options.levels(), options.bound(), options.positive_share(), options.bandwidth(),
          options.algorithm()};
}

core::Scope QuantileActivationImpl::scope() const {
  const auto channels = static_cast<double>(options.num_features());
  const int64_t image_channels = options.scope() == Scope::image
                                     ? options.num_features()
                                     : static_cast<int64_t>(options.image_share() * channels);
  return {image_channels, options.group_images()};
}

QuantileActivationImpl::Rows QuantileActivationImpl::rows() const {
  const int64_t first = scope().image_channels;
  const auto part = [&](const torch::Tensor& t) {
    return first == 0 || !t.defined() ? t : t.narrow(0, first, options.num_features() - first);
  };
  return {part(weight_in),        part(bias_in),         part(weight_out),
          part(bias_out),         part(running_mean_in), part(running_var_in),
          part(running_mean_out), part(running_var_out), part(context)};
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
    const Rows own = rows();
    return ops::tracked_halves(
        x, {maybe(weight_in), maybe(bias_in), maybe(weight_out), maybe(bias_out)},
        {.quantile = quantile(), .eps = options.eps(), .scope = {.image_channels = image_channels}},
        given_quantiles(own), call.quantised);
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
  const auto blend = [&](const torch::Tensor& running, const torch::Tensor& batch) {
    const torch::Tensor blended = torch::lerp(running, batch.to(running.scalar_type()), share);
    if (track) running.copy_(blended.detach());
    return blended;
  };
  if (track) num_batches_tracked += 1;
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
    if (!group.empty()) ops::all_reduce_sum(ops::process_group(kName, group), batch);
    const torch::Tensor blended =
        ops::context_blend(rows.context, (1 - share) * values, batch, share * values);
    if (track) rows.context.copy_(blended);
    quantiles = ops::context_quantiles(blended, options.levels(), options.bound(),
                                       options.positive_share());
  }
  // Without images, too, it has a gradient: every rank takes part in all sums.
  const torch::Tensor u = x.size(0) > 0 ? ops::quantile_apply(x, quantiles, scale, shift, {}, {},
                                                              options.bandwidth(), call.quantised)
                                        : Scaled::of(x, *scale, *shift);
  if (!options.norm_out()) return u;
  const auto [var, mean] = channel_statistics(u, size, group);
  return Scaled(blend(rows.mean_out, mean), blend(rows.var_out, var), rows.weight_out,
                rows.bias_out, options.eps())(u);
}

}  // namespace qact::nn
