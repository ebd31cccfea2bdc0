#include "qact/train/network_options.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>

#include <stdexcept>

namespace qact::train {
namespace {

// Weights on trial are no draws of the program's.
class GeneratorGuard {
 public:
  ~GeneratorGuard() { generator_.set_state(state_); }

 private:
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  const at::Tensor state_ = generator_.get_state();
};

}  // namespace

models::NetworkOptions network_options(const TrainConfig& config) {
  models::NetworkOptions options;
  options.activation = config.activation;
  options.placement = config.placement;
  options.early_stages = config.early_stages;
  options.image_share = config.image_share;
  options.sites = config.sites;
  options.norm = config.norm;
  return options;
}

void check_network(const TrainConfig& config) {
  const GeneratorGuard guard;
  try {
    const auto network = models::make(config.model, network_options(config));
    if (config.checkpoint_activations) network->checkpoint_activations();
  } catch (const c10::Error& error) {
    throw std::invalid_argument(error.what_without_backtrace());
  }
}

}  // namespace qact::train
