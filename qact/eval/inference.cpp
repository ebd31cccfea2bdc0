#include "qact/eval/inference.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "qact/adapt/method.h"
#include "qact/base/fail.h"
#include "qact/base/joined.h"
#include "qact/eval/normalised_images.h"
#include "qact/nn/context_mode.h"
#include "qact/nn/state_guard.h"

namespace qact::eval {
namespace {

using nn::ContextMode;

ContextMode context_mode(const std::string& mode) {
  if (mode == "batch" || mode == "augment") return ContextMode::batch;
  if (mode == "prior") return ContextMode::prior;
  if (mode == "stream") return ContextMode::stream;
  return ContextMode::tracked;
}

class Inference {
 public:
  Inference(const train::Model& model, const data::Split& images, const InferenceOptions& options,
            const std::vector<std::string>& classifiers, const Advance& advance)
      : model_(model),
        options_(options),
        classifiers_(classifiers),
        advance_(advance),
        images_(images, model.card.normalisation, model.card.dither,
                model.network->parameters().front().device(), options.seed),
        probabilities_(classifiers.size()) {}

  InferenceOutput run() {
    const torch::NoGradGuard no_grad;
    torch::nn::Module& network = *model_.network;
    const nn::StateGuard guard(network);
    std::optional<nn::StateGuard> classifier_guard;
    if (!model_.classifiers.empty()) {
      nn::QuantileClassifier quantile = fitted().quantile;
      classifier_guard.emplace(*quantile);
      nn::set_context_mode(*quantile, classifier_mode(), options_.prior);
      nn::set_context_momentum(*quantile, options_.momentum);
    }
    nn::set_context_mode(network, context_mode(options_.mode), options_.prior);
    if (options_.mode == "dataset") reestimate_statistics();
    network.eval();
    nn::set_context_momentum(network, options_.momentum);
    if (options_.mode == "augment") {
      for (int64_t i = 0; i < images_.count(); ++i) predict_copies(i);
    } else {
      predict_batches();
    }
    InferenceOutput out{torch::cat(embeddings_), {}};
    for (size_t c = 0; c < classifiers_.size(); ++c) {
      if (ranks_among_all(classifiers_[c])) {
        probabilities_[c] = {classify(classifiers_[c], {out.embedding, {}})};
      }
      out.probabilities.push_back(torch::cat(probabilities_[c]).to(torch::kCPU));
      check_finite(out.probabilities.back(), classifiers_[c]);
    }
    return out;
  }

 private:
  // Finite weights can overflow nevertheless.
  static void check_finite(const torch::Tensor& probabilities, const std::string& classifier) {
    const torch::Tensor wrong = probabilities.isfinite().all(1).logical_not().nonzero();
    if (wrong.size(0) == 0) return;
    base::fail("inference", "expected finite probabilities from the classifier ", classifier,
               ", got others for ", wrong.size(0), " of ", probabilities.size(0),
               " images, the first of index ", wrong[0].item<int64_t>());
  }

  std::vector<std::pair<int64_t, int64_t>> batches() const {
    return batches_of(images_.count(), options_.batch_size);
  }

  // The statistics of the whole dataset are those of one large batch.
  ContextMode classifier_mode() const {
    return options_.mode == "dataset" ? ContextMode::batch : context_mode(options_.mode);
  }

  const train::Classifiers& fitted() const {
    return model_.classifiers.for_mode(classifier_mode());
  }

  // Such a classifier is applied once, after the last batch.
  bool ranks_among_all(const std::string& classifier) const {
    return classifier == "quantile" && options_.mode == "dataset";
  }

  torch::Tensor classify(const std::string& name, const models::NetworkOutput& output) const {
    if (name == "head") return output.logits.softmax(1);
    return train::probabilities(fitted(), name, output.embedding);
  }

  // A pass in train(), with the cumulative average of the batches as running statistics.
  void reestimate_statistics() {
    torch::nn::Module& network = *model_.network;
    nn::reset_contexts(network);
    nn::set_context_momentum(network, std::nullopt);
    network.train();
    // A single image has no statistics.
    const int64_t size = std::max<int64_t>(options_.batch_size, 2);
    for (const auto& [first, last] : batches_of(images_.count(), size)) {
      model_.network->forward(images_.batch(first, last));
      if (advance_) advance_(0);
    }
  }

  void predict_batches() {
    const auto method = adapt::find_method(options_.adapt).make(*model_.network);
    method->prepare(images_);
    for (const auto& [first, last] : batches()) {
      add(method->predict(images_, first, last), last - first);
    }
    method->reset();
  }

  void predict_copies(int64_t index) {
    const torch::Tensor images = images_.with_copies(index, options_.copies, options_.augmentation);
    add(model_.network->forward(images), 1);
  }

  // Stores the outputs of the first `count` images of a batch, and no memory of the others.
  void add(const models::NetworkOutput& output, int64_t count) {
    const auto first = [&](const torch::Tensor& all) {
      return count == all.size(0) ? all : all.narrow(0, 0, count).clone();
    };
    embeddings_.push_back(first(output.embedding));
    for (size_t c = 0; c < classifiers_.size(); ++c) {
      if (ranks_among_all(classifiers_[c])) continue;
      probabilities_[c].push_back(first(classify(classifiers_[c], output)));
    }
    if (advance_) advance_(count);
  }

  const train::Model& model_;
  const InferenceOptions& options_;
  const std::vector<std::string>& classifiers_;
  const Advance& advance_;
  const NormalisedImages images_;
  std::vector<torch::Tensor> embeddings_;
  std::vector<std::vector<torch::Tensor>> probabilities_;
};

[[noreturn]] void refuse_inference(const char* option, const std::string& expected,
                                   const std::string& got) {
  throw std::invalid_argument(std::string("[inference] expected ") + option + " " + expected +
                              ", got " + got);
}

}  // namespace

std::vector<std::string> inference_modes() {
  return {"tracked", "batch", "prior", "stream", "augment", "dataset"};
}

void check(const InferenceOptions& options) {
  const std::vector<std::string> modes = inference_modes();
  if (std::find(modes.begin(), modes.end(), options.mode) == modes.end()) {
    refuse_inference("a mode", "of " + base::joined(modes, ", "), "'" + options.mode + "'");
  }
  const adapt::MethodInfo& method = adapt::find_method(options.adapt);
  if (!method.works_in(options.mode)) {
    refuse_inference("a mode", "of " + base::joined(method.modes, ", ") + " with " + method.name,
                     "'" + options.mode + "'");
  }
  if (options.batch_size < 1)
    refuse_inference("--batch-size", "of 1 or more", std::to_string(options.batch_size));
  if (!std::isfinite(options.prior) || options.prior < 0) {
    refuse_inference("--prior", "of 0 or more images", std::to_string(options.prior));
  }
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    refuse_inference("--momentum", "within 0 and 1", std::to_string(options.momentum));
  }
  if (options.copies < 1)
    refuse_inference("--copies", "of 1 or more", std::to_string(options.copies));
}

int64_t images_per_prediction(const InferenceOptions& options) {
  return options.mode == "augment" ? 1 + options.copies : 1;
}

std::vector<std::pair<int64_t, int64_t>> batches_of(int64_t images, int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> out;
  const int64_t count = std::max<int64_t>(images / size, images > 0 ? 1 : 0);
  for (int64_t b = 0; b < count; ++b) {
    out.emplace_back(b * size, b + 1 < count ? (b + 1) * size : images);
  }
  return out;
}

std::vector<std::string> classifiers_of(const train::Model& model) {
  std::vector<std::string> names;
  if (model.card.loss == "cross-entropy") names.emplace_back("head");
  if (model.classifiers.empty()) return names;
  for (const std::string& name : train::classifier_names()) names.push_back(name);
  return names;
}

void check_classifiers(const train::Model& model, const std::vector<std::string>& names) {
  const std::vector<std::string> known = classifiers_of(model);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    base::fail("inference", "expected one of the model's classifiers (",
               known.empty() ? "it has none" : base::joined(known, ", "), "), got ", name);
  }
}

void check_adaptation(const train::Model& model, const std::string& name) {
  const adapt::MethodInfo& method = adapt::find_method(name);
  if (method.uses_head && model.card.loss != "cross-entropy") {
    base::fail(name, "expected a network whose logits were trained, with the loss cross-entropy, ",
               "got ", model.card.loss);
  }
  method.make(*model.network);
}

void check_size(const models::NetworkOptions& network, const image::Size& size) {
  const int side = static_cast<int>(network.image_size);
  const image::Size expected{side, side, static_cast<int>(network.channels)};
  if (size == expected) return;
  base::fail("inference", "expected images of ", side, "x", side, " and ", expected.channels,
             " channels for the network, got ", size.height, "x", size.width, " and ",
             size.channels);
}

InferenceOutput infer(const train::Model& model, const data::Split& images,
                      const InferenceOptions& options, const std::vector<std::string>& classifiers,
                      const Advance& advance) {
  check(options);
  check_classifiers(model, classifiers);
  check_adaptation(model, options.adapt);
  check_size(model.network->options(), images.size);
  if (images.count() == 0) base::fail("inference", "expected an image or more, got none");
  try {
    return Inference(model, images, options, classifiers, advance).run();
  } catch (const c10::Error& error) {
    const bool dataset = options.mode == "dataset";
    const int64_t least = dataset ? images.count() : std::min(options.batch_size, images.count());
    if (!(dataset || options.mode == "batch") || least > 1) throw;
    base::fail("inference", "expected batches of 2 or more images in mode ", options.mode,
               " for this network, got one image: tracked, prior, stream and augment take it (",
               error.what_without_backtrace(), ")");
  }
}

}  // namespace qact::eval
