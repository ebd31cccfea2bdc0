#include "qact/eval/inference.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "qact/base/fail.h"
#include "qact/data/augment.h"
#include "qact/eval/state_guard.h"
#include "qact/nn/context_mode.h"

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
        images_(images),
        options_(options),
        classifiers_(classifiers),
        advance_(advance),
        table_(data::normalisation_table(model.card.normalisation, images.size.channels)),
        device_(model.network->parameters().front().device()),
        probabilities_(classifiers.size()) {}

  InferenceOutput run() {
    const torch::NoGradGuard no_grad;
    torch::nn::Module& network = *model_.network;
    const StateGuard guard(network);
    std::optional<StateGuard> classifier_guard;
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
      for (const auto& [first, last] : batches()) predict(batch(first, last), last - first);
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
      model_.network->forward(batch(first, last));
      if (advance_) advance_(0);
    }
  }

  torch::Tensor empty(int64_t count) const {
    return torch::empty({count, images_.size.channels, images_.size.height, images_.size.width});
  }

  void write(int64_t index, const data::CropFlip& placement, torch::Tensor& out, int64_t at) const {
    data::write_normalised(images_.image(index), images_.size, placement, table_,
                           out.data_ptr<float>() + at * images_.size.values());
  }

  torch::Tensor batch(int64_t first, int64_t last) const {
    torch::Tensor out = empty(last - first);
    for (int64_t i = first; i < last; ++i) write(i, {}, out, i - first);
    return out.to(device_);
  }

  // The image comes first, then its copies, which depend on the seed and the image's index alone.
  void predict_copies(int64_t index) {
    torch::Tensor out = empty(1 + options_.copies);
    write(index, {}, out, 0);
    base::Random random(options_.seed, base::Stream::copies, index);
    for (int64_t k = 1; k <= options_.copies; ++k) {
      write(index, data::draw_crop_flip(options_.augmentation, &random), out, k);
    }
    predict(out.to(device_), 1);
  }

  // Stores the outputs of the first `count` images of a batch, and no memory of the others.
  void predict(const torch::Tensor& images, int64_t count) {
    const models::NetworkOutput output = model_.network->forward(images);
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
  const data::Split& images_;
  const InferenceOptions& options_;
  const std::vector<std::string>& classifiers_;
  const Advance& advance_;
  const std::vector<float> table_;
  const torch::Device device_;
  std::vector<torch::Tensor> embeddings_;
  std::vector<std::vector<torch::Tensor>> probabilities_;
};

std::string comma_separated(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

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
    refuse_inference("a mode", "of " + comma_separated(modes), "'" + options.mode + "'");
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
               known.empty() ? "it has none" : comma_separated(known), "), got ", name);
  }
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
