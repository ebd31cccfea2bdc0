// TENT (Wang et al. 2021): each batch is one step of Adam that makes the predictions of the batch
// more certain. What learns are the affine parameters of norms and quantile activations; statistics
// are those of the batch. A prediction is of the forward pass before its batch's step.
#include <torch/optim/adam.h>
#include <torch/torch.h>

#include <optional>

#include "qact/adapt/affine_parameters.h"
#include "qact/adapt/factories.h"
#include "qact/base/fail.h"
#include "qact/nn/state_guard.h"

namespace qact::adapt {
namespace {

constexpr double kLearningRate = 1e-3;

// The mean over images of -sum_k p_k log p_k.
torch::Tensor mean_entropy(const torch::Tensor& logits) {
  const torch::Tensor log_p = logits.log_softmax(1);
  return -(log_p.exp() * log_p).sum(1).mean();
}

class Tent : public Method {
 public:
  explicit Tent(models::Network& network) : network_(network), affine_(affine_parameters(network)) {
    if (!affine_.empty()) return;
    base::fail("tent",
               "expected a network with norms or quantile activations, whose affine "
               "parameters it adapts, got one without");
  }
  ~Tent() override { clear(); }

  void prepare(const Images&) override {
    clear();
    source_.emplace(network_, affine_);
    for (const torch::Tensor& parameter : network_.parameters()) {
      parameter.set_requires_grad(false);
    }
    for (const torch::Tensor& parameter : affine_) parameter.set_requires_grad(true);
    optimiser_.emplace(affine_, torch::optim::AdamOptions(kLearningRate));
  }

  models::NetworkOutput predict(const Images& images, int64_t first, int64_t last) override {
    const torch::AutoGradMode with_gradients(true);
    const models::NetworkOutput output = network_.forward(images.batch(first, last));
    optimiser_->zero_grad();
    mean_entropy(output.logits).backward();
    optimiser_->step();
    return {output.embedding.detach(), output.logits.detach()};
  }

  void reset() override { clear(); }

 private:
  void clear() {
    if (optimiser_) optimiser_->zero_grad();
    optimiser_.reset();
    source_.reset();
  }

  models::Network& network_;
  const std::vector<torch::Tensor> affine_;
  std::optional<nn::StateGuard> source_;  // what it was trained to be
  std::optional<torch::optim::Adam> optimiser_;
};

}  // namespace

std::unique_ptr<Method> make_tent(models::Network& network) {
  return std::make_unique<Tent>(network);
}

}  // namespace qact::adapt
