#include "qact/train/add_classifiers.h"

#include <torch/torch.h>

#include "qact/nn/quantile_activation.h"
#include "qact/train/model_file.h"

namespace qact::train {
namespace {

namespace fs = std::filesystem;
using Subset = TrainingData::Subset;

// More than this many values of embeddings and `auto` fits nothing.
constexpr int64_t kMostValues = int64_t{1} << 27;

bool wanted(const TrainConfig& config, const TrainingData& data, int64_t features) {
  if (config.fit_classifiers != "auto") return config.fit_classifiers == "on";
  return data.images() * features <= kMostValues;
}

// None once `go_on` said so.
std::optional<Embedded> embed(models::Network& network, PrefetchingLoader& feed,
                              const std::function<bool()>& go_on) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> embeddings, labels;
  while (const std::optional<Batch> batch = feed.next()) {
    embeddings.push_back(network.forward(batch->images).embedding);
    labels.push_back(batch->labels.clone());
    if (!go_on()) return std::nullopt;
  }
  return Embedded{torch::cat(embeddings), torch::cat(labels)};
}

Embedded select(const Embedded& from, const std::vector<int64_t>& which) {
  const torch::Tensor indices = torch::tensor(which, torch::kLong).to(from.labels.device());
  return {from.embedding.index_select(0, indices), from.labels.index_select(0, indices)};
}

// Empty once `go_on` said so.
Classifiers fit(models::Network& network, const TrainConfig& config, TrainingData& data,
                const std::function<bool()>& go_on) {
  std::optional<Embedded> train = embed(network, data.plain(Subset::train), go_on), held_out;
  if (!train) return {};
  if (data.validation_images() > 0) {
    held_out = embed(network, data.plain(Subset::validation), go_on);
    if (!held_out) return {};
  } else {
    const Holdout parts = hold_out(data.images(), 0.1, config.split_seed);
    if (parts.validation.empty()) {  // of fewer than 5, all serve for both
      held_out = train;
    } else {
      held_out = select(*train, parts.validation);
      train = select(*train, parts.train);
    }
  }
  return fit_classifiers(*train, *held_out, data.split().classes, {.seed = config.seed}, go_on);
}

FittedClassifiers fit_for_modes(models::Network& network, const TrainConfig& config,
                                TrainingData& data, const std::function<bool()>& go_on) {
  FittedClassifiers out;
  nn::set_context_mode(network, nn::ContextMode::tracked);
  out.tracked = fit(network, config, data, go_on);
  if (out.tracked.empty()) return {};
  nn::set_context_mode(network, nn::ContextMode::batch);
  out.batch = fit(network, config, data, go_on);
  if (out.batch.empty()) return {};
  return out;
}

}  // namespace

bool add_classifiers(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                     const std::function<bool()>& go_on) {
  FittedClassifiers last;
  int64_t last_epoch = -1;
  for (const fs::path& path : {folder.model(), folder.best()}) {
    if (config.fit_classifiers == "off" || !fs::exists(path)) continue;
    const Model model = load_model(path);
    if (!wanted(config, data, model.network->features())) continue;
    const bool there = !model.classifiers.empty();
    if (!there && model.card.epoch != last_epoch) {
      model.network->to(torch::Device(config.device));
      if (config.channels_last) model.network->use_channels_last();
      model.network->eval();
      last = fit_for_modes(*model.network, config, data, go_on);
      if (last.empty()) return false;
    }
    if (there) {
      last = model.classifiers;
    } else {
      save_model(path, *model.network, model.card, last);
    }
    last_epoch = model.card.epoch;
  }
  return true;
}

}  // namespace qact::train
