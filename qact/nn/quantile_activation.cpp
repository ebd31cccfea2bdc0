#include "qact/nn/quantile_activation.h"

#include <ATen/record_function.h>
#include <torch/types.h>

#include <cmath>
#include <ostream>

#include "qact/ops/checks.h"
#include "qact/ops/context.h"

namespace qact::nn {
namespace {

constexpr const char* kName = "QuantileActivation";

}  // namespace

QuantileActivationImpl::QuantileActivationImpl(QuantileActivationOptions options_)
    : options(std::move(options_)) {
  TORCH_CHECK(options.channels() > 0, "[", kName, "] expected channels > 0, got ",
              options.channels());
  ops::check_quantile(kName, options.levels(), options.bound(), options.positive_share(),
                      options.bandwidth(), options.algorithm(),
                      fused() ? ops::kMostLayerLevels : ops::kMostLevels);
  ops::check_positive(kName, "eps", options.eps());
  const std::optional<double> momentum = options.momentum();
  TORCH_CHECK(!momentum || (*momentum >= 0 && *momentum <= 1), "[", kName,
              "] expected momentum in [0, 1], got ", momentum.value_or(0));
  TORCH_CHECK(std::isfinite(options.prior()) && options.prior() >= 0, "[", kName,
              "] expected a finite prior >= 0, got ", options.prior());
  reset();
}

void QuantileActivationImpl::reset() {
  const int64_t channels = options.channels();
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
  context.copy_(ops::context_standard_normal(options.channels()));
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
  stream << "qact::nn::QuantileActivation(channels=" << options.channels()
         << ", levels=" << options.levels() << ", norm_in=" << std::boolalpha << options.norm_in()
         << ", norm_out=" << options.norm_out() << ")";
}

// Told to torch's observers as one operation, whichever operators the context mode takes for it:
// from the layer's input to what the next layer reads.
torch::Tensor QuantileActivationImpl::forward(const torch::Tensor& x) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  if (!record.isActive()) return run(x, Call{});
  const c10::IValue input(x);
  record.before(kRecordedName, c10::ArrayRef<const c10::IValue>(input));
  torch::Tensor y = run(x, Call{});
  if (record.needsOutputs()) record.setOutputs(std::vector<c10::IValue>{y});
  return y;
}

torch::Tensor QuantileActivationImpl::rank(const torch::Tensor& x, bool keep) {
  TORCH_CHECK(!options.norm_out(), "[", kName, "] expected norm_out to be off for rank()");
  return run(x, Call{.quantised = false, .keep = keep});
}

torch::Tensor QuantileActivationImpl::run(const torch::Tensor& x, const Call& call) {
  ops::check_values(kName, x);
  TORCH_CHECK(x.size(1) == options.channels(), "[", kName, "] expected ", options.channels(),
              " channels in dimension 1, got ", ops::describe(x));
  if (is_training()) return in_batch(x, call);
  switch (options.context_mode()) {
    case ContextMode::batch:
      return in_batch(x, {call.quantised, /*keep=*/false});
    case ContextMode::tracked:
      return in_kept(x, call);
    default:
      return in_blend(x, call);
  }
}

}  // namespace qact::nn
