#include "qact/eval/state_guard.h"

#include <torch/types.h>

#include <exception>

#include "qact/nn/batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::eval {
namespace {

// A layer's own settings: its context mode, prior and momentum.
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
    // train() would reach those inside it, too: they come later, and put themselves right.
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
    // A device that fails to copy has failed before: that error is on its way.
    if (std::uncaught_exceptions() == 0) std::terminate();
  }
}

}  // namespace qact::eval
