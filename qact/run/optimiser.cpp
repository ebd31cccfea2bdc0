#include "qact/run/optimiser.h"

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "qact/ops/border.h"

namespace qact::run {
namespace {

using safetensors::Tensors;
using torch::optim::AdamParamState;
using torch::optim::SGDParamState;

constexpr const char* kMomentum = ".momentum_buffer";
constexpr const char* kMean = ".exp_avg";
constexpr const char* kSquare = ".exp_avg_sq";
constexpr const char* kStep = ".step";

std::unique_ptr<torch::optim::Optimizer> make(const TrainConfig& c,
                                              std::vector<torch::Tensor> parameters) {
  if (c.opt == "adam") {
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters), torch::optim::AdamOptions(c.lr).weight_decay(c.weight_decay));
  }
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(c.lr)
                                                 .momentum(c.momentum)
                                                 .weight_decay(c.weight_decay)
                                                 .nesterov(c.nesterov));
}

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
    return tensor.to(like.device(), /*non_blocking=*/false, /*copy=*/true);
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

Optimiser::Optimiser(const TrainConfig& config, const models::Network& network)
    : parameters_(network.named_parameters()),
      optimiser_(make(config, network.parameters())),
      adam_(config.opt == "adam") {}

void Optimiser::step(double lr) {
  for (auto& group : optimiser_->param_groups()) group.options().set_lr(lr);
  optimiser_->step();
}

Tensors Optimiser::state() const {
  Tensors result;
  const auto& states = optimiser_->state();
  for (const auto& parameter : parameters_) {
    const std::string& name = parameter.key();
    const auto found = states.find(parameter.value().unsafeGetTensorImpl());
    if (found == states.end()) continue;
    if (adam_) {
      const auto& state = static_cast<const AdamParamState&>(*found->second);
      result[name + kMean] = state.exp_avg();
      result[name + kSquare] = state.exp_avg_sq();
      result[name + kStep] = torch::full({}, state.step(), torch::kLong);
    } else if (const auto& state = static_cast<const SGDParamState&>(*found->second);
               state.momentum_buffer().defined()) {
      result[name + kMomentum] = state.momentum_buffer();
    }
  }
  return result;
}

void Optimiser::load(const Tensors& state, const std::string& source) {
  Saved saved(state, source);
  auto& states = optimiser_->state();
  states.clear();
  for (const auto& item : parameters_) {
    const std::string& name = item.key();
    const torch::Tensor& parameter = item.value();
    void* const key = parameter.unsafeGetTensorImpl();
    if (adam_ && saved.contains(name + kStep)) {
      auto restored = std::make_unique<AdamParamState>();
      restored->exp_avg(saved.take(name + kMean, parameter));
      restored->exp_avg_sq(saved.take(name + kSquare, parameter));
      restored->step(saved.take(name + kStep, no_step()).item<int64_t>());
      states[key] = std::move(restored);
    } else if (!adam_ && saved.contains(name + kMomentum)) {
      auto restored = std::make_unique<SGDParamState>();
      restored->momentum_buffer(saved.take(name + kMomentum, parameter));
      states[key] = std::move(restored);
    }
  }
  saved.check_empty();
}

}  // namespace qact::run
