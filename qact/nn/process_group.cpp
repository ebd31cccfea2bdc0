#include "qact/nn/process_group.h"

#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

void set_group(QuantileActivationOptions& options, const std::string& name) {
  if (options.scope() != Scope::batch && options.scope() != Scope::world) return;
  TORCH_CHECK(name.empty() || (options.norm_in() && options.norm_out()),
              "[set_process_group] expected norm_in and norm_out of every quantile activation, got "
              "norm_in ",
              options.norm_in() ? "on" : "off", ", norm_out ", options.norm_out() ? "on" : "off");
  options.scope(name.empty() ? Scope::batch : Scope::world);
  options.process_group(name);
}

}  // namespace

void set_process_group(torch::nn::Module& network, const std::string& name) {
  for (const auto& module : network.modules(/*include_self=*/true)) {
    if (auto* activation = module->as<QuantileActivation>()) set_group(activation->options, name);
    if (auto* norm = module->as<BatchNorm>()) norm->options.process_group(name);
  }
}

}  // namespace qact::nn
