// The quantile classifier: a linear layer whose outputs are ranked per class, so that a
// class's probability says where a sample stands among all that the classifier is shown.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>

#include "qact/nn/quantile_activation.h"

namespace qact::nn {

// Where it is told that one sample in K is of a class, and the others are not.
enum class ClassPrior {
  // In the ranks: logits >= 0 share a weight of 1 - 1/K, so that a logit of 0 is ranked 1/K and
  // the mean output is the prior 1/K when one sample in K is positive.
  quantile,
  // In the loss: the class counts 1 - 1/K, the rest 1/K. A logit of 0 is ranked 1/2.
  loss,
};

struct QuantileClassifierOptions {
  QuantileClassifierOptions(int64_t in_features, int64_t num_classes)
      : in_features_(in_features), num_classes_(num_classes) {}

  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, num_classes);
  // 0: max(100, 10 * num_classes). Fewer would tie too often among many classes.
  TORCH_ARG(int64_t, levels) = 0;
  TORCH_ARG(ClassPrior, class_prior) = ClassPrior::quantile;
  TORCH_ARG(double, bandwidth) = 0.5;
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  TORCH_ARG(ContextMode, context_mode) = ContextMode::tracked;
  TORCH_ARG(double, prior) = 16.0;
};

class QuantileClassifierImpl : public torch::nn::Cloneable<QuantileClassifierImpl> {
 public:
  explicit QuantileClassifierImpl(QuantileClassifierOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  // (B, num_classes) probabilities, one class against the rest: rows need not sum to 1. They
  // stay half a level off 0 and 1, so that the cross-entropy is finite.
  torch::Tensor forward(const torch::Tensor& x);

  // The class of the highest rank, (B). Levels that tie are told apart by the rank itself.
  torch::Tensor predict(const torch::Tensor& x);

  // Binary cross-entropy of forward's output against labels, (B) int64, one against the rest.
  static torch::Tensor loss(const torch::Tensor& probabilities, const torch::Tensor& labels,
                            ClassPrior class_prior = ClassPrior::quantile);

  QuantileClassifierOptions options;
  torch::nn::Linear linear{nullptr};
  QuantileActivation activation{nullptr};
};
TORCH_MODULE(QuantileClassifier);

}  // namespace qact::nn
