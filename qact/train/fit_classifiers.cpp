#include "qact/train/fit_classifiers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "qact/base/random.h"
#include "qact/ops/checks.h"

namespace qact::train {
namespace {

// Classifiers are fitted to (x - mean) / std and used on x.
struct StandardScaler {
  torch::Tensor mean, std;

  explicit StandardScaler(const torch::Tensor& x)
      : mean(x.mean(0)), std(x.std(0, /*unbiased=*/false)) {
    // A feature that hardly varies says nothing: it is not scaled up to the others.
    std = std.clamp_min(std::max(1e-3 * std.max().item<double>(), 1e-30));
  }

  torch::Tensor operator()(const torch::Tensor& x) const {
    return (x.to(mean.scalar_type()) - mean) / std;
  }

  // Sets the layer so that it gives on x what `weight` and `bias` give on the scaled x.
  void fold_into(torch::nn::Linear& layer, const torch::Tensor& weight,
                 const torch::Tensor& bias) const {
    const torch::Tensor scaled = weight.to(mean.scalar_type()) / std;
    layer->weight.copy_(scaled);
    layer->bias.copy_(bias - scaled.matmul(mean));
  }
};

class QuantileFit {
 public:
  QuantileFit(const torch::Tensor& x, const torch::Tensor& labels, int64_t classes,
              const FitOptions& options)
      : x_(x),
        labels_(labels),
        generator_(at::make_generator<at::CPUGeneratorImpl>(
            base::Random(options.seed, base::Stream::classifiers).bits())),
        batch_(std::min(x.size(0), std::max(kMinBatch, kPerClass * classes))),
        // It is trained in eval(): in the context of the batch, as in train(), but without an
        // update of the running context. That one is set by a single pass in train(), with
        // momentum 1.
        classifier_(nn::QuantileClassifierOptions(x.size(1), classes)
                        .class_prior(options.prior)
                        .momentum(1.0)
                        .context_mode(nn::ContextMode::batch)),
        optimiser_(classifier_->parameters(), torch::optim::AdamOptions(kLearningRate)) {
    const torch::NoGradGuard no_grad;
    const double deviation = 1 / std::sqrt(static_cast<double>(x.size(1)));
    const torch::Tensor drawn = deviation * torch::randn({classes, x.size(1)}, generator_);
    // The weight of a feature that hardly varies has no gradient. It begins near 0, so that a shift
    // of that feature at test time does no harm.
    classifier_->linear->weight.copy_(drawn * x.std(0, /*unbiased=*/false).cpu());
    classifier_->linear->bias.zero_();
    classifier_->to(x.device());
    classifier_->eval();
  }

  // The weights of the best round, with the context of all of x; none once told to stop.
  std::optional<nn::QuantileClassifier> fit(const torch::Tensor& validation,
                                            const torch::Tensor& validation_labels,
                                            const ShouldContinue& should_continue) {
    double least = std::numeric_limits<double>::infinity();
    std::optional<nn::QuantileClassifier> best;
    for (int64_t round = 0, waited = 0; round < kRounds && waited <= kPatience; ++round) {
      if (should_continue && !should_continue()) return std::nullopt;
      train_round(round);
      nn::QuantileClassifier current = with_running_context();
      const double loss = loss_of(current, validation, validation_labels).item<double>();
      ++waited;
      if (loss < least) least = loss, best = current, waited = 0;
    }
    TORCH_CHECK(best, "[classifiers] expected finite embeddings, got a loss that is not");
    return best;
  }

 private:
  static constexpr int64_t kMinBatch = 512, kPerClass = 20;
  static constexpr int64_t kRounds = 30, kPatience = 5, kMinSteps = 15;
  static constexpr double kLearningRate = 0.02;

  static torch::Tensor loss_of(nn::QuantileClassifier& classifier, const torch::Tensor& x,
                               const torch::Tensor& labels) {
    return nn::QuantileClassifierImpl::loss(classifier->forward(x), labels,
                                            classifier->options.class_prior());
  }

  void train_round(int64_t round) {
    const int64_t steps = std::max(kMinSteps, x_.size(0) / batch_);
    for (int64_t i = 0; i < steps; ++i) {
      const double done = (round + static_cast<double>(i) / steps) / kRounds;
      const double lr = kLearningRate * (1 + std::cos(std::numbers::pi * done)) / 2;
      optimiser_.param_groups()[0].options().set_lr(lr);
      const torch::Tensor chosen = next_batch();
      optimiser_.zero_grad();
      loss_of(classifier_, x_.index_select(0, chosen), labels_.index_select(0, chosen)).backward();
      optimiser_.step();
    }
  }

  // Each sample once, then all shuffled again.
  torch::Tensor next_batch() {
    if (!order_.defined() || used_ + batch_ > x_.size(0)) {
      order_ = torch::randperm(x_.size(0), generator_, torch::kLong).to(x_.device());
      used_ = 0;
    }
    used_ += batch_;
    return order_.narrow(0, used_ - batch_, batch_);
  }

  // A copy whose running context is that of all of x. Its logits have unit variance, which contexts
  // resolve best; ranks do not depend on the scale.
  nn::QuantileClassifier with_running_context() {
    const torch::NoGradGuard no_grad;
    nn::QuantileClassifier copy(
        std::dynamic_pointer_cast<nn::QuantileClassifierImpl>(classifier_->clone()));
    const torch::Tensor scale = copy->linear->forward(x_).std(0).clamp_min(1e-6);
    copy->linear->weight.div_(scale.unsqueeze(1));
    copy->linear->bias.div_(scale);
    copy->activation->options.context_mode(nn::ContextMode::tracked);
    copy->train();
    copy->forward(x_);
    copy->eval();
    return copy;
  }

  const torch::Tensor x_, labels_;
  at::Generator generator_;
  const int64_t batch_;
  nn::QuantileClassifier classifier_;
  torch::optim::Adam optimiser_;
  torch::Tensor order_;
  int64_t used_ = 0;  // samples of order_
};

// In double: a gradient of 1e-5 would be lost in float's rounding errors.
struct LogisticFit {
  torch::Tensor x, labels;
  torch::nn::Linear layer;

  LogisticFit(const torch::Tensor& x_, const torch::Tensor& labels_, int64_t classes)
      : x(x_), labels(labels_), layer(x.size(1), classes) {
    layer->to(x.device(), torch::kDouble);
    const torch::NoGradGuard no_grad;
    layer->weight.zero_();
    layer->bias.zero_();
  }

  torch::Tensor loss_and_gradient() {
    layer->zero_grad();
    const auto n = static_cast<double>(x.size(0));
    const torch::Tensor loss = torch::cross_entropy_loss(layer->forward(x), labels) +
                               layer->weight.square().sum() / (2 * n);
    loss.backward();
    return loss;
  }

  bool converged() {
    loss_and_gradient();
    for (const torch::Tensor& p : layer->parameters()) {
      if (!(p.grad().abs().max().item<double>() <= kTolerance)) return false;
    }
    return true;
  }

  // False once told to stop.
  bool fit(const ShouldContinue& should_continue) {
    torch::optim::LBFGS optimiser(layer->parameters(), torch::optim::LBFGSOptions(1)
                                                           .max_iter(kIterationsPerStep)
                                                           .tolerance_grad(kTolerance)
                                                           .tolerance_change(0)
                                                           .history_size(20)
                                                           .line_search_fn("strong_wolfe"));
    for (int done = 0; done < kIterations && !converged(); done += kIterationsPerStep) {
      if (should_continue && !should_continue()) return false;
      optimiser.step([&] { return loss_and_gradient(); });
    }
    return true;
  }

  static constexpr int kIterationsPerStep = 20, kIterations = 1000;
  static constexpr double kTolerance = 1e-5;
};

void check(const LabelledEmbeddings& data, int64_t features, int64_t classes) {
  const torch::Tensor& x = data.embedding;
  const torch::Tensor& y = data.labels;
  TORCH_CHECK(x.dim() == 2 && x.size(0) > 0 && x.size(1) == features && y.dim() == 1 &&
                  y.scalar_type() == torch::kLong && y.size(0) == x.size(0),
              "[classifiers] expected embeddings (N,", features,
              ") and int64 labels (N), N at least 1, got ", ops::describe(x), " and ",
              ops::describe(y));
  const int64_t least = y.min().item<int64_t>(), most = y.max().item<int64_t>();
  TORCH_CHECK(least >= 0 && most < classes, "[classifiers] expected labels in 0..", classes - 1,
              ", got ", least < 0 ? least : most);
}

}  // namespace

Classifiers fit_classifiers(const LabelledEmbeddings& train, const LabelledEmbeddings& validation,
                            int64_t classes, const FitOptions& options,
                            const ShouldContinue& should_continue) {
  const int64_t features = train.embedding.dim() == 2 ? train.embedding.size(1) : 1;
  check(train, features, classes);
  check(validation, features, classes);
  const StandardScaler scale(train.embedding.to(torch::kDouble));
  const torch::Tensor x = scale(train.embedding);

  QuantileFit quantile(x.to(torch::kFloat), train.labels, classes, options);
  std::optional<nn::QuantileClassifier> ranked = quantile.fit(
      scale(validation.embedding).to(torch::kFloat), validation.labels, should_continue);
  LogisticFit logistic(x, train.labels, classes);
  if (!ranked || !logistic.fit(should_continue)) return {};

  const torch::NoGradGuard no_grad;
  Classifiers result{*ranked, torch::nn::Linear(features, classes)};
  result.to(x.device());
  scale.fold_into(result.quantile->linear, result.quantile->linear->weight,
                  result.quantile->linear->bias);
  scale.fold_into(result.logistic, logistic.layer->weight, logistic.layer->bias);
  result.quantile->eval();
  return result;
}

}  // namespace qact::train
