#include "qact/nn/quantile_activation.h"

#include <ATen/record_function.h>
#include <torch/types.h>

#include <cmath>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "qact/nn/running_quantiles.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/describe.h"

namespace qact::nn {
namespace {

constexpr const char* kName = "QuantileActivation";

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

}  // namespace qact::nn
