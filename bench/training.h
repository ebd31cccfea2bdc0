// A network in training as `qact train` has it, to be timed.
#pragma once

#include <ATen/Context.h>
#include <torch/torch.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "bench/bench.h"
#include "qact/losses/loss.h"
#include "qact/models/autocast.h"
#include "qact/models/network.h"
#include "qact/nn/context_mode.h"
#include "qact/train/graphed_network.h"
#include "qact/train/optimiser.h"
#include "qact/train/training_data.h"

namespace qact::bench {

struct Precision {
  const char *dtype, *layout;
  bool mixed, channels_last;
};

class Training {
 public:
  Training(const std::string& model, const models::NetworkOptions& options, int64_t batch,
           torch::Device device, const Precision& precision)
      : precision_(precision), device_(device), network_(make(model, options, device)) {
    torch::manual_seed(2);
    const int64_t side = options.image_size;
    cached_ = {torch::randn({batch, options.channels, side, side}).to(device),
               torch::randint(options.classes, {batch}).to(device),
               {}};
    if (precision.channels_last) network_->use_channels_last();
    optimiser_ = std::make_unique<train::Optimiser>(train::TrainConfig(), *network_);
    if (!std::isfinite(step().item<double>())) {
      throw std::runtime_error("[train_step] expected a finite loss, got another");
    }
  }

  const train::Batch& cached() const { return cached_; }
  void checkpoint_activations() { network_->checkpoint_activations(); }

  // As `qact train` does on a GPU.
  void capture() {
    for (int i = 0; i < train::GraphedNetwork::kWarmUpSteps; ++i) step();
    optimiser_->zero_grad();
    graphed_.emplace(cached_.images, [&](const torch::Tensor& x) { return forward(x); });
  }

  torch::Tensor step() { return step(cached_); }

  torch::Tensor step(const train::Batch& batch) {
    if (!graphed_) optimiser_->zero_grad();
    const models::NetworkOutput output =
        graphed_ ? graphed_->forward(batch.images) : forward(batch.images);
    base::Random random(0, 0);
    const torch::Tensor loss = loss_.value({output.embedding, output.logits, batch.labels}, random);
    loss.backward();
    if (graphed_) graphed_->backward();
    optimiser_->step(1e-3);
    return loss;
  }

  // Milliseconds of a step, and of what the host did of it; on a GPU of several in a row, as
  // a run has them.
  std::vector<double> timed() {
    return times_of([&] { step(); });
  }

  // For timed_inference(); no training after this.
  void infer_in(nn::ContextMode mode) {
    network_->eval();
    nn::set_context_mode(*network_, mode);
  }

  // The same of a forward pass as `qact eval` has it.
  std::vector<double> timed_inference() {
    const torch::NoGradGuard no_grad;
    return times_of([&] { forward(cached_.images); });
  }

 private:
  std::vector<double> times_of(const std::function<void()>& work) {
    const int times = device_.is_cuda() ? 10 : 1;
    double host = 0;
    const double ms = milliseconds_of([&] {
      host = milliseconds_of([&] {
        for (int i = 0; i < times; ++i) work();
      });
      if (device_.is_cuda()) torch::cuda::synchronize();
    });
    return {ms / times, host / times};
  }

  static std::shared_ptr<models::Network> make(const std::string& model,
                                               const models::NetworkOptions& options,
                                               torch::Device device) {
    torch::manual_seed(1);
    const auto network = models::make(model, options);
    network->to(device);
    return network;
  }

  models::NetworkOutput forward(const torch::Tensor& images) {
    const models::Autocast autocast(device_.type(), precision_.mixed);
    return network_->forward(images);
  }

  const Precision precision_;
  const torch::Device device_;
  const std::shared_ptr<models::Network> network_;
  const losses::Loss loss_ = losses::make("cross-entropy");
  train::Batch cached_;
  std::unique_ptr<train::Optimiser> optimiser_;
  std::optional<train::GraphedNetwork> graphed_;
};

// Milliseconds of a step, the mean of `steps` in a row, with what they queued on a GPU.
inline double gpu_milliseconds(int steps, const std::function<void()>& step) {
  return milliseconds_of([&] {
           for (int i = 0; i < steps; ++i) step();
           torch::cuda::synchronize();
         }) /
         steps;
}

// With the settings of `qact train`.
inline torch::Device fast_gpu() {
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setBenchmarkCuDNN(true);
  return {torch::kCUDA};
}

}  // namespace qact::bench
