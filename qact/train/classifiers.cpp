#include "qact/train/classifiers.h"

#include <torch/torch.h>

#include "qact/ops/checks.h"
#include "qact/train/tensor_extractor.h"

namespace qact::train {
namespace {

const std::string kTracked = "classifier.tracked.", kBatch = "classifier.batch.";

torch::Tensor quantile_probabilities(nn::QuantileClassifier classifier, const torch::Tensor& x) {
  const bool stream = classifier->activation->options.context_mode() == nn::ContextMode::stream;
  const torch::Tensor rank = classifier->activation->rank(classifier->linear->forward(x), stream);
  // Half a level off 0 and 1, as the outputs in training.
  const double half = 0.5 / static_cast<double>(classifier->activation->options.levels());
  return half + (1 - 2 * half) * rank.clamp(0, 1);
}

safetensors::Tensors tensors_of(const Classifiers& classifiers, const std::string& prefix) {
  const auto& [quantile, logistic] = classifiers;
  const double share = quantile->activation->options.positive_share();
  return {{prefix + "quantile.weight", quantile->linear->weight},
          {prefix + "quantile.bias", quantile->linear->bias},
          {prefix + "quantile.context", quantile->activation->context},
          {prefix + "quantile.positive_share", torch::full({}, share, torch::kDouble)},
          {prefix + "logistic.weight", logistic->weight},
          {prefix + "logistic.bias", logistic->bias}};
}

// Empty where there are none with this prefix.
Classifiers extract_prefixed(safetensors::Tensors* tensors, const std::string& prefix,
                             const std::string& source) {
  const auto first = tensors->find(prefix + "quantile.weight");
  if (first == tensors->end()) return {};
  TORCH_CHECK(first->second.dim() == 2, source, ": expected weights (K,D), got ",
              ops::describe(first->second));
  const int64_t classes = first->second.size(0), features = first->second.size(1);
  TensorExtractor extractor(tensors, source);
  const auto extract = [&](const char* name, const std::vector<int64_t>& shape,
                           torch::Dtype type = torch::kFloat) {
    return extractor.extract(prefix + name, shape, type);
  };
  const double share = extract("quantile.positive_share", {}, torch::kDouble).item<double>();
  const auto prior = share == 0.5 ? nn::ClassPrior::loss : nn::ClassPrior::quantile;

  const torch::NoGradGuard no_grad;
  Classifiers result{
      nn::QuantileClassifier(nn::QuantileClassifierOptions(features, classes).class_prior(prior)),
      torch::nn::Linear(features, classes)};
  auto& [quantile, logistic] = result;
  const torch::Tensor& context = quantile->activation->context;
  quantile->linear->weight.copy_(extract("quantile.weight", {classes, features}));
  quantile->linear->bias.copy_(extract("quantile.bias", {classes}));
  context.copy_(extract("quantile.context", context.sizes().vec(), torch::kLong));
  logistic->weight.copy_(extract("logistic.weight", {classes, features}));
  logistic->bias.copy_(extract("logistic.bias", {classes}));
  quantile->eval();
  return result;
}

}  // namespace

void Classifiers::to(torch::Device device) {
  if (empty()) return;
  quantile->to(device);
  logistic->to(device);
}

void ClassifiersByContext::to(torch::Device device) {
  tracked.to(device);
  batch.to(device);
}

std::vector<std::string> classifier_names() { return {"quantile", "logistic"}; }

torch::Tensor probabilities(const Classifiers& classifiers, const std::string& name,
                            const torch::Tensor& embedding) {
  TORCH_CHECK(name == "quantile" || name == "logistic",
              "[classifiers] expected quantile or logistic, got '", name, "'");
  TORCH_CHECK(!classifiers.empty(), "[classifiers] expected fitted classifiers, got none");
  const int64_t features = classifiers.logistic->options.in_features();
  TORCH_CHECK(embedding.dim() == 2 && embedding.size(1) == features,
              "[classifiers] expected embeddings of shape (N,", features, "), got ",
              ops::describe(embedding));
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = embedding.to(torch::kFloat);
  if (name == "logistic") {
    return torch::linear(x, classifiers.logistic->weight, classifiers.logistic->bias).softmax(1);
  }
  return quantile_probabilities(classifiers.quantile, x);
}

safetensors::Tensors classifier_tensors(const ClassifiersByContext& classifiers) {
  if (classifiers.empty()) return {};
  safetensors::Tensors out = tensors_of(classifiers.tracked, kTracked);
  out.merge(tensors_of(classifiers.batch, kBatch));
  return out;
}

ClassifiersByContext extract_classifiers(safetensors::Tensors* tensors, const std::string& source) {
  ClassifiersByContext out{extract_prefixed(tensors, kTracked, source),
                           extract_prefixed(tensors, kBatch, source)};
  if (out.tracked.empty() != out.batch.empty()) {
    safetensors::fail(source, "classifiers for running contexts and for the batch's own",
                      out.tracked.empty() ? "the latter alone" : "the former alone");
  }
  return out;
}

}  // namespace qact::train
