#include "qact/train/optimiser.h"

#include <torch/torch.h>

#include "qact/ops/checks.h"

namespace qact::train {
namespace {

using safetensors::Tensors;
constexpr const char* kMomentum = ".momentum_buffer";
constexpr const char* kMean = ".exp_avg";
constexpr const char* kSquare = ".exp_avg_sq";
constexpr const char* kStep = ".step";

// Takes tensors out of a saved state one by one, so that what is left over is known.
class Saved {
 public:
  Saved(const Tensors& state, const std::string& source) : left_(state), source_(source) {}

  bool contains(const std::string& name) const { return left_.contains(name); }

  torch::Tensor take(const std::string& name, const torch::Tensor& like) {
    const auto found = left_.find(name);
    const std::string where = source_ + ": tensor '" + name + "'";
    if (found == left_.end()) safetensors::fail(where, ops::describe(like), "none");
    const torch::Tensor tensor = found->second;
    if (tensor.sizes() != like.sizes() || tensor.scalar_type() != like.scalar_type()) {
      safetensors::fail(where, ops::describe(like), ops::describe(tensor));
    }
    left_.erase(found);
    return torch::empty_like(like).copy_(tensor);  // with its device and strides
  }

  void check_empty() const {
    if (left_.empty()) return;
    safetensors::fail(source_, "only tensors that the optimiser has",
                      "'" + left_.begin()->first + "' too");
  }

 private:
  Tensors left_;
  std::string source_;
};

torch::Tensor no_step() { return torch::zeros({}, torch::kLong); }

}  // namespace

Optimiser::Optimiser(const TrainConfig& config, const models::Network& network) : config_(config) {
  for (const auto& item : network.named_parameters()) slots_.push_back({item.key(), item.value()});
}

void Optimiser::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

void Optimiser::step(double lr) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parameters, gradients, momenta, means, squares, steps;
  for (Slot& slot : slots_) {
    const torch::Tensor& p = slot.parameter;
    if (!p.grad().defined()) continue;
    parameters.push_back(p);
    gradients.push_back(p.grad());
    if (adam()) {
      if (!slot.mean.defined()) {
        slot.mean = torch::zeros_like(p);
        slot.square = torch::zeros_like(p);
        slot.steps = torch::zeros({}, p.options().dtype(torch::kFloat));
      }
      means.push_back(slot.mean);
      squares.push_back(slot.square);
      steps.push_back(slot.steps);
    } else if (config_.momentum > 0) {
      if (!slot.momentum.defined()) slot.momentum = torch::zeros_like(p);
      momenta.push_back(slot.momentum);
    }
  }
  if (parameters.empty()) return;
  if (adam()) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
    at::_foreach_add_(steps, 1);
    at::_fused_adam_(parameters, gradients, means, squares, {}, steps, lr, kBeta1, kBeta2,
                     config_.weight_decay, kEps, /*amsgrad=*/false, /*maximize=*/false);
  } else {
    at::_fused_sgd_(parameters, gradients, momenta, config_.weight_decay, config_.momentum, lr,
                    /*dampening=*/0, config_.nesterov, /*maximize=*/false,
                    /*is_first_step=*/false);
  }
}

Tensors Optimiser::state() const {
  Tensors result;
  for (const Slot& slot : slots_) {
    if (slot.momentum.defined()) result[slot.name + kMomentum] = slot.momentum;
    if (!slot.mean.defined()) continue;
    result[slot.name + kMean] = slot.mean;
    result[slot.name + kSquare] = slot.square;
    result[slot.name + kStep] = slot.steps.to(torch::kLong);
  }
  return result;
}

void Optimiser::load(const Tensors& state, const std::string& source) {
  Saved saved(state, source);
  for (Slot& slot : slots_) {
    slot.momentum = slot.mean = slot.square = slot.steps = torch::Tensor();
    const torch::Tensor& p = slot.parameter;
    if (adam() && saved.contains(slot.name + kStep)) {
      slot.mean = saved.take(slot.name + kMean, p);
      slot.square = saved.take(slot.name + kSquare, p);
      slot.steps = saved.take(slot.name + kStep, no_step()).to(p.device(), torch::kFloat);
    } else if (!adam() && saved.contains(slot.name + kMomentum)) {
      slot.momentum = saved.take(slot.name + kMomentum, p);
    }
  }
  saved.check_empty();
}

}  // namespace qact::train
