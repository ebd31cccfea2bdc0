#include "qact/eval/state_guard.h"

#include <torch/types.h>

#include <exception>

#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::eval {
namespace {

// Context mode, prior and momentum.
template <class Layer>
std::function<void()> restore_options(Layer& layer) {
  return [&layer, options = layer.options] { layer.options = options; };
}

}  // namespace

StateGuard::StateGuard(torch::nn::Module& module) {
  for (const torch::Tensor& buffer : module.buffers()) {
    restore_.emplace_back([buffer, saved = buffer.clone()] { buffer.copy_(saved); });
  }
  module.apply([&](torch::nn::Module& each) {
    // train() also changes the modules inside, which come later and are restored after it.
    restore_.emplace_back([&each, training = each.is_training()] { each.train(training); });
    if (auto* activation = each.as<nn::QuantileActivation>()) {
      restore_.push_back(restore_options(*activation));
    }
    if (auto* norm = each.as<nn::BatchNorm>()) restore_.push_back(restore_options(*norm));
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

}  // namespace qact::eval
