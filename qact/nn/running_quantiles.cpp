#include "qact/nn/running_quantiles.h"

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
  const bool known = quantiles_.defined() && of_.is_alias_of(context.storage()) &&
                     version_ == static_cast<uint32_t>(context._version()) &&
                     options_.levels == options.levels && options_.bound == options.bound &&
                     options_.positive_share == options.positive_share;
  if (!known) {
    quantiles_ = compute();
    of_ = context.storage();
    version_ = static_cast<uint32_t>(context._version());
    options_ = options;
    options_.algorithm = "auto";  // not ours to keep, and of no concern here
  }
  return quantiles_;
}

}  // namespace qact::nn
