#include "qact/train/optimiser.h"

#include <torch/torch.h>

#include "qact/train/tensor_extractor.h"

namespace qact::train {
namespace {

using safetensors::Tensors;
constexpr const char* kMomentumBuffer = ".momentum_buffer";
constexpr const char* kExpAvg = ".exp_avg";
constexpr const char* kExpAvgSq = ".exp_avg_sq";
constexpr const char* kStep = ".step";

}  // namespace

Optimiser::Optimiser(const TrainConfig& config, const models::Network& network) : config_(config) {
  for (const auto& item : network.named_parameters()) {
    states_.push_back({item.key(), item.value()});
  }
}

void Optimiser::zero_grad() {
  for (ParameterState& s : states_) s.parameter.mutable_grad().reset();
}

void Optimiser::step(double lr) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parameters, gradients, momentum_buffers, exp_avgs, exp_avg_sqs, steps;
  for (ParameterState& s : states_) {
    const torch::Tensor& p = s.parameter;
    if (!p.grad().defined()) continue;
    parameters.push_back(p);
    gradients.push_back(p.grad());
    if (adam()) {
      if (!s.exp_avg.defined()) {
        s.exp_avg = torch::zeros_like(p);
        s.exp_avg_sq = torch::zeros_like(p);
        s.step = torch::zeros({}, p.options().dtype(torch::kFloat));
      }
      exp_avgs.push_back(s.exp_avg);
      exp_avg_sqs.push_back(s.exp_avg_sq);
      steps.push_back(s.step);
    } else if (config_.momentum > 0) {
      if (!s.momentum_buffer.defined()) s.momentum_buffer = torch::zeros_like(p);
      momentum_buffers.push_back(s.momentum_buffer);
    }
  }
  if (parameters.empty()) return;
  if (adam()) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
    at::_foreach_add_(steps, 1);
    at::_fused_adam_(parameters, gradients, exp_avgs, exp_avg_sqs, {}, steps, lr, kBeta1, kBeta2,
                     config_.weight_decay, kEps, /*amsgrad=*/false, /*maximize=*/false);
  } else {
    at::_fused_sgd_(parameters, gradients, momentum_buffers, config_.weight_decay, config_.momentum,
                    lr,
                    /*dampening=*/0, config_.nesterov, /*maximize=*/false,
                    /*is_first_step=*/false);
  }
}

Tensors Optimiser::state_dict() const {
  Tensors result;
  for (const ParameterState& s : states_) {
    if (s.momentum_buffer.defined()) result[s.name + kMomentumBuffer] = s.momentum_buffer;
    if (!s.exp_avg.defined()) continue;
    result[s.name + kExpAvg] = s.exp_avg;
    result[s.name + kExpAvgSq] = s.exp_avg_sq;
    result[s.name + kStep] = s.step.to(torch::kLong);
  }
  return result;
}

void Optimiser::load_state_dict(const Tensors& state, const std::string& source) {
  Tensors left = state;
  TensorExtractor saved(&left, source);
  for (ParameterState& s : states_) {
    s.momentum_buffer = s.exp_avg = s.exp_avg_sq = s.step = torch::Tensor();
    const torch::Tensor& p = s.parameter;
    const auto extract = [&](const char* suffix) {
      const torch::Tensor tensor = saved.extract(s.name + suffix, p.sizes(), p.scalar_type());
      return torch::empty_like(p).copy_(tensor);  // on p's device, with its strides
    };
    if (adam() && saved.contains(s.name + kStep)) {
      s.exp_avg = extract(kExpAvg);
      s.exp_avg_sq = extract(kExpAvgSq);
      s.step = saved.extract(s.name + kStep, {}, torch::kLong).to(p.device(), torch::kFloat);
    } else if (!adam() && saved.contains(s.name + kMomentumBuffer)) {
      s.momentum_buffer = extract(kMomentumBuffer);
    }
  }
  if (left.empty()) return;
  safetensors::fail(source, "only tensors that the optimiser has",
                    "'" + left.begin()->first + "' too");
}

}  // namespace qact::train
