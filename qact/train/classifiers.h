// Classifiers on the frozen embeddings of a network: the quantile classifier, and logistic
// regression as its baseline. fit_classifiers.h fits them.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "qact/nn/quantile_classifier.h"
#include "qact/safetensors/torch/tensors.h"

namespace qact::train {

struct Classifiers {
  nn::QuantileClassifier quantile{nullptr};
  torch::nn::Linear logistic{nullptr};

  bool empty() const { return quantile.is_empty(); }
  void to(torch::Device device);
};

// A network's embeddings depend on the context that its activations rank in. So there are
// classifiers for embeddings in the running contexts, and others for embeddings in the batch's own.
struct ClassifiersByContext {
  Classifiers tracked, batch;

  bool empty() const { return tracked.empty(); }
  void to(torch::Device device);
  const Classifiers& for_mode(nn::ContextMode mode) const {
    return mode == nn::ContextMode::batch ? batch : tracked;
  }
};

// The names that probabilities() takes: quantile, logistic.
std::vector<std::string> classifier_names();

// (N, K) float for embeddings (N, D), on their device, without gradient. logistic: rows sum to 1.
// quantile: each class against the rest, so rows need not sum to 1; from ranks instead of levels,
// so that classes do not tie. It ranks among the training embeddings, unless
// nn::set_context_mode(*classifiers.quantile, mode) has chosen another context, such as the N given
// (batch).
torch::Tensor probabilities(const Classifiers& classifiers, const std::string& name,
                            const torch::Tensor& embedding);

// Named tensors for a file, and back: classifier.MODE.quantile.weight, .bias and .context,
// classifier.MODE.logistic.weight and .bias, for the MODEs tracked and batch; none for empty
// classifiers. extract_classifiers removes its tensors from `tensors`; `source` is for messages.
safetensors::Tensors classifier_tensors(const ClassifiersByContext& classifiers);
ClassifiersByContext extract_classifiers(safetensors::Tensors* tensors, const std::string& source);

}  // namespace qact::train
