#include "qact/nn/state_guard.h"

#include <torch/types.h>

#include <exception>

#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

// Context mode, prior and momentum.
template <class Layer>
std::function<void()> restore_options(Layer& layer) {
  return [&layer, options = layer.options] { layer.options = options; };
}

}  // namespace

StateGuard::StateGuard(torch::nn::Module& module, const std::vector<torch::Tensor>& parameters) {
  const auto save = [&](const torch::Tensor& tensor) {
    restore_.emplace_back([tensor, saved = tensor.detach().clone()] { tensor.copy_(saved); });
  };
  for (const torch::Tensor& buffer : module.buffers()) save(buffer);
  for (const torch::Tensor& parameter : parameters) save(parameter);
  for (const torch::Tensor& parameter : module.parameters()) {
    restore_.emplace_back(
        [parameter, learns = parameter.requires_grad()] { parameter.set_requires_grad(learns); });
  }
  module.apply([&](torch::nn::Module& each) {
    // train() also changes the modules inside, which come later and are restored after it.
    restore_.emplace_back([&each, training = each.is_training()] { each.train(training); });
    if (auto* activation = each.as<QuantileActivation>()) {
      restore_.push_back(restore_options(*activation));
    }
    if (auto* norm = each.as<BatchNorm>()) restore_.push_back(restore_options(*norm));
  });
}

StateGuard::~StateGuard() {
  const torch::NoGradGuard no_grad;
  try {
    for (const auto& restore : restore_) restore();
  } catch (...) {
    // A copy fails where the device has failed before: that exception is already being thrown.
    if (std::uncaught_exceptions() == 0) std::terminate();
  }
}

}  // namespace qact::nn
