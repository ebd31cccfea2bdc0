#include "qact/nn/running_quantiles.h"

#include <c10/core/InferenceMode.h>

#include "qact/core/mutant.h"
#include "qact/ops/context.h"

namespace qact::nn {

torch::Tensor RunningQuantiles::get(const torch::Tensor& context,
                                    const ops::QuantileOptions& options) {
  const auto compute = [&] {
    const torch::NoGradGuard no_grad;
    return ops::context_quantiles(context, options.levels, options.bound, options.positive_share);
  };
  if (!context.is_cpu() || context.is_inference()) return compute();
  const std::lock_guard lock(lock_);
  // Read before the context is: a change meanwhile must not pass for what was computed.
  const auto version = static_cast<uint32_t>(context._version());
  const bool known = quantiles_.defined() && of_.is_alias_of(context.storage()) &&
                     data_ == context.const_data_ptr() &&
                     (version_ == version || QACT_MUTANT("running_quantiles_version")) &&
                     options_.levels == options.levels && options_.bound == options.bound &&
                     options_.positive_share == options.positive_share;
  if (!known) {
    // Whoever asks next may want gradients, for which a tensor of inference mode is of no use.
    const c10::InferenceMode normal(false);
    quantiles_ = compute();
    of_ = context.storage();
    data_ = context.const_data_ptr();
    version_ = version;
    options_ = options;
    options_.algorithm = "auto";  // not ours to keep, and of no concern here
  }
  return quantiles_;
}

}  // namespace qact::nn
