// Classifiers on the frozen embeddings of a network: the quantile classifier, and logistic
// regression as its rival.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "qact/nn/quantile_classifier.h"
#include "qact/safetensors/torch/tensors.h"

namespace qact::train {

struct Embedded {
  torch::Tensor embedding;  // (N, D)
  torch::Tensor labels;     // (N) int64
};

struct Classifiers {
  nn::QuantileClassifier quantile{nullptr};
  torch::nn::Linear logistic{nullptr};

  bool empty() const { return quantile.is_empty(); }
  void to(torch::Device device);
};

// A network's embeddings depend on the context it ranks in, so each kind has classifiers of its
// own: those fitted to embeddings by the contexts kept from training, and by the batch's own.
struct FittedClassifiers {
  Classifiers tracked, batch;

  bool empty() const { return tracked.empty(); }
  void to(torch::Device device);
  const Classifiers& for_mode(nn::ContextMode mode) const {
    return mode == nn::ContextMode::batch ? batch : tracked;
  }
};

// The names that probabilities() takes: quantile, logistic.
std::vector<std::string> classifier_names();

// (N, K) float of embeddings (N, D), on their device; no gradient. logistic: rows sum to 1.
// quantile: one class against the rest, so rows need not; the rank itself, not its level, so
// that classes do not tie. It is ranked among the training embeddings unless
// nn::set_context_mode(*classifiers.quantile, mode) chose another context, such as the N given
// (batch).
torch::Tensor probabilities(const Classifiers& classifiers, const std::string& name,
                            const torch::Tensor& embedding);

struct ClassifierOptions {
  uint64_t seed = 0;  // draws the quantile classifier's first weights and its batches
  nn::ClassPrior prior = nn::ClassPrior::quantile;
};

// Fits both, on the embeddings' device; neither sees `held_out` but the quantile classifier,
// which keeps the weights of its round with the least loss there. Features are standardised
// while fitting, and the weights given back take them as they are.
//
//   quantile   Adam on batches of 512 or 20 a class, a cosine over at most 30 rounds, each an
//              epoch or 15 steps, left after 5 that were no better
//   logistic   L-BFGS on the mean cross-entropy + |W|^2 / 2N until no entry of its gradient
//              exceeds 1e-5 or for 1,000 iterations
//
// `go_on` is asked now and then: false leaves, with classifiers that are empty.
Classifiers fit_classifiers(const Embedded& train, const Embedded& held_out, int64_t classes,
                            const ClassifierOptions& options = {},
                            const std::function<bool()>& go_on = {});

// As tensors with names for a file, and back: classifier.MODE.quantile.weight, .bias and .context,
// classifier.MODE.logistic.weight and .bias, for the MODEs tracked and batch. Nothing of empty
// ones. take_classifiers removes what it reads from `tensors`; `source` is for messages.
safetensors::Tensors classifier_tensors(const FittedClassifiers& classifiers);
FittedClassifiers take_classifiers(safetensors::Tensors* tensors, const std::string& source);

}  // namespace qact::train
