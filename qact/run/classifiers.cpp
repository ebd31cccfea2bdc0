#include "qact/run/classifiers.h"

#include <torch/torch.h>

#include "qact/ops/border.h"

namespace qact::run {
namespace {

const std::string kQuantile = "classifier.quantile.";
const std::string kLogistic = "classifier.logistic.";

torch::Tensor quantile_probabilities(nn::QuantileClassifier classifier, const torch::Tensor& x) {
  const torch::Tensor rank = classifier->activation->rank(classifier->linear->forward(x));
  // Half a level off 0 and 1, as the outputs it was trained by.
  const double half = 0.5 / static_cast<double>(classifier->activation->options.levels());
  return half + (1 - 2 * half) * rank.clamp(0, 1);
}

// Takes tensors of the expected shapes out of a file's.
class Taken {
 public:
  Taken(safetensors::Tensors* from, const std::string& source) : from_(from), source_(source) {}

  torch::Tensor operator()(const std::string& name, std::vector<int64_t> shape, torch::Dtype type) {
    const auto found = from_->find(name);
    const std::string where = source_ + ": tensor '" + name + "'";
    const torch::Tensor like = torch::empty(shape, type);
    if (found == from_->end()) safetensors::fail(where, ops::describe(like), "none");
    const torch::Tensor tensor = found->second;
    if (tensor.sizes() != like.sizes() || tensor.scalar_type() != type) {
      safetensors::fail(where, ops::describe(like), ops::describe(tensor));
    }
    from_->erase(found);
    return tensor;
  }

 private:
  safetensors::Tensors* from_;
  const std::string source_;
};

}  // namespace

void Classifiers::to(torch::Device device) {
  if (empty()) return;
  quantile->to(device);
  logistic->to(device);
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

safetensors::Tensors classifier_tensors(const Classifiers& classifiers) {
  if (classifiers.empty()) return {};
  const auto& [quantile, logistic] = classifiers;
  const double share = quantile->activation->options.positive_share();
  return {{kQuantile + "weight", quantile->linear->weight},
          {kQuantile + "bias", quantile->linear->bias},
          {kQuantile + "context", quantile->activation->context},
          {kQuantile + "positive_share", torch::full({}, share, torch::kDouble)},
          {kLogistic + "weight", logistic->weight},
          {kLogistic + "bias", logistic->bias}};
}

Classifiers take_classifiers(safetensors::Tensors* tensors, const std::string& source) {
  const auto first = tensors->find(kQuantile + "weight");
  if (first == tensors->end()) return {};
  TORCH_CHECK(first->second.dim() == 2, source, ": expected weights (K,D), got ",
              ops::describe(first->second));
  const int64_t classes = first->second.size(0), features = first->second.size(1);
  Taken take(tensors, source);
  const double share = take(kQuantile + "positive_share", {}, torch::kDouble).item<double>();
  const auto prior = share == 0.5 ? nn::ClassPrior::loss : nn::ClassPrior::quantile;

  const torch::NoGradGuard no_grad;
  Classifiers result{
      nn::QuantileClassifier(nn::QuantileClassifierOptions(features, classes).class_prior(prior)),
      torch::nn::Linear(features, classes)};
  auto& [quantile, logistic] = result;
  const torch::Tensor& context = quantile->activation->context;
  quantile->linear->weight.copy_(take(kQuantile + "weight", {classes, features}, torch::kFloat));
  quantile->linear->bias.copy_(take(kQuantile + "bias", {classes}, torch::kFloat));
  context.copy_(take(kQuantile + "context", context.sizes().vec(), torch::kLong));
  logistic->weight.copy_(take(kLogistic + "weight", {classes, features}, torch::kFloat));
  logistic->bias.copy_(take(kLogistic + "bias", {classes}, torch::kFloat));
  quantile->eval();
  return result;
}

}  // namespace qact::run
