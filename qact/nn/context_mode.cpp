#include "qact/nn/context_mode.h"

#include <torch/types.h>

#include <cmath>

#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

// Calls visit(layer) for each layer with a context, itself included.
template <class Visit>
void visit_contexts(torch::nn::Module& network, Visit visit) {
  network.apply([&](torch::nn::Module& module) {
    if (auto* activation = module.as<QuantileActivation>()) visit(*activation);
    if (auto* norm = module.as<BatchNorm>()) visit(*norm);
  });
}

}  // namespace

void set_context_mode(torch::nn::Module& network, ContextMode mode, double prior) {
  TORCH_CHECK(std::isfinite(prior) && prior >= 0,
              "[set_context_mode] expected a finite prior >= 0, got ", prior);
  visit_contexts(network, [&](auto& layer) { layer.options.context_mode(mode).prior(prior); });
}

void set_context_momentum(torch::nn::Module& network, std::optional<double> momentum) {
  TORCH_CHECK(!momentum || (*momentum >= 0 && *momentum <= 1),
              "[set_context_momentum] expected momentum in [0, 1], got ", momentum.value_or(0));
  visit_contexts(network, [&](auto& layer) { layer.options.momentum(momentum); });
}

void reset_contexts(torch::nn::Module& network) {
  visit_contexts(network, [](auto& layer) { layer.reset_running_stats(); });
}

}  // namespace qact::nn
