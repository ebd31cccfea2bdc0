#include "qact/nn/quantile_classifier.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <ostream>

#include "qact/ops/checks.h"

namespace qact::nn {
namespace {

constexpr const char* kClassifier = "QuantileClassifier";

}  // namespace

QuantileClassifierImpl::QuantileClassifierImpl(QuantileClassifierOptions options_)
    : options(std::move(options_)) {
  TORCH_CHECK(options.in_features() > 0, "[", kClassifier, "] expected in_features > 0, got ",
              options.in_features());
  TORCH_CHECK(options.num_classes() >= 2, "[", kClassifier, "] expected at least 2 classes, got ",
              options.num_classes());
  reset();
}

void QuantileClassifierImpl::reset() {
  const int64_t classes = options.num_classes();
  const bool in_ranks = options.class_prior() == ClassPrior::quantile;
  const double share = in_ranks ? 1.0 - 1.0 / static_cast<double>(classes) : 0.5;
  const int64_t usual = std::min<int64_t>(ops::kMostLevels, std::max<int64_t>(100, 10 * classes));
  linear = register_module("linear", torch::nn::Linear(options.in_features(), classes));
  activation = register_module(
      "activation", QuantileActivation(QuantileActivationOptions(classes)
                                           .levels(options.levels() > 0 ? options.levels() : usual)
                                           .positive_share(share)
                                           .bandwidth(options.bandwidth())
                                           .norm_in(false)
                                           .norm_out(false)
                                           .momentum(options.momentum())
                                           .context_mode(options.context_mode())
                                           .prior(options.prior())));
}

void QuantileClassifierImpl::pretty_print(std::ostream& stream) const {
  stream << "qact::nn::QuantileClassifier(in_features=" << options.in_features()
         << ", num_classes=" << options.num_classes() << ", levels=" << activation->options.levels()
         << ")";
}

torch::Tensor QuantileClassifierImpl::forward(const torch::Tensor& x) {
  const torch::Tensor u = activation->forward(linear->forward(x));
  const double half = 0.5 / static_cast<double>(activation->options.levels());
  // The clamp moves the value, not the gradient: a confident mistake must still be felt.
  return u + (u.detach().clamp(half, 1 - half) - u.detach());
}

torch::Tensor QuantileClassifierImpl::predict(const torch::Tensor& x) {
  torch::NoGradGuard no_grad;
  return activation->rank(linear->forward(x)).argmax(1);
}

torch::Tensor QuantileClassifierImpl::loss(const torch::Tensor& probabilities,
                                           const torch::Tensor& labels, ClassPrior class_prior) {
  TORCH_CHECK(probabilities.dim() == 2 && probabilities.numel() > 0 && labels.dim() == 1 &&
                  labels.scalar_type() == torch::kLong && labels.size(0) == probabilities.size(0),
              "[", kClassifier,
              "] expected probabilities of shape (B,K) and int64 labels of shape (B), got ",
              ops::describe(probabilities), " and ", ops::describe(labels));
  const int64_t classes = probabilities.size(1);
  const int64_t least = labels.min().item<int64_t>(), most = labels.max().item<int64_t>();
  TORCH_CHECK(least >= 0 && most < classes, "[", kClassifier, "] expected labels in 0..",
              classes - 1, ", got ", least < 0 ? least : most);
  const torch::Tensor target = torch::one_hot(labels, classes).to(probabilities.scalar_type());
  if (class_prior == ClassPrior::quantile)
    return torch::binary_cross_entropy(probabilities, target);
  const double prior = 1.0 / static_cast<double>(classes);
  return torch::binary_cross_entropy(probabilities, target, prior + (1 - 2 * prior) * target);
}

}  // namespace qact::nn
