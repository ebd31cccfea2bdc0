#include "qact/train/add_classifiers.h"

#include <torch/torch.h>

#include "qact/nn/quantile_activation.h"
#include "qact/train/model_file.h"

namespace qact::train {
namespace {

namespace fs = std::filesystem;
using Subset = TrainingData::Subset;

// `auto` fits nothing to more values of embeddings than this.
constexpr int64_t kMostValues = int64_t{1} << 27;

bool wanted(const TrainConfig& config, const TrainingData& data, int64_t features) {
  if (config.fit_classifiers != "auto") return config.fit_classifiers == "on";
  return data.images() * features <= kMostValues;
}

// None once told to stop.
std::optional<LabelledEmbeddings> embed(models::Network& network, PrefetchingLoader& loader,
                                        const ShouldContinue& should_continue) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> embeddings, labels;
  while (const std::optional<Batch> batch = loader.next()) {
    embeddings.push_back(network.forward(batch->images).embedding);
    labels.push_back(batch->labels.clone());
    if (!should_continue()) return std::nullopt;
  }
  return LabelledEmbeddings{torch::cat(embeddings), torch::cat(labels)};
}

LabelledEmbeddings select(const LabelledEmbeddings& from, const std::vector<int64_t>& which) {
  const torch::Tensor indices = torch::tensor(which, torch::kLong).to(from.labels.device());
  return {from.embedding.index_select(0, indices), from.labels.index_select(0, indices)};
}

// Empty once told to stop.
Classifiers fit(models::Network& network, const TrainConfig& config, TrainingData& data,
                const ShouldContinue& should_continue) {
  const auto embed_subset = [&](Subset subset) {
    return embed(network, data.lone_evaluation_loader(subset), should_continue);
  };
  std::optional<LabelledEmbeddings> train = embed_subset(Subset::train), validation;
  if (!train) return {};
  if (data.validation_images() > 0) {
    validation = embed_subset(Subset::validation);
    if (!validation) return {};
  } else {
    const SplitIndices indices = random_split(data.images(), 0.1, config.split_seed);
    if (indices.validation.empty()) {  // fewer than 5 images: all of them are both
      validation = train;
    } else {
      validation = select(*train, indices.validation);
      train = select(*train, indices.train);
    }
  }
  return fit_classifiers(*train, *validation, data.split().classes, {.seed = config.seed},
                         should_continue);
}

ClassifiersByContext fit_by_context(models::Network& network, const TrainConfig& config,
                                    TrainingData& data, const ShouldContinue& should_continue) {
  ClassifiersByContext out;
  nn::set_context_mode(network, nn::ContextMode::tracked);
  out.tracked = fit(network, config, data, should_continue);
  if (out.tracked.empty()) return {};
  nn::set_context_mode(network, nn::ContextMode::batch);
  out.batch = fit(network, config, data, should_continue);
  if (out.batch.empty()) return {};
  return out;
}

}  // namespace

bool add_classifiers(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                     const ShouldContinue& should_continue) {
  ClassifiersByContext last;
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
      last = fit_by_context(*model.network, config, data, should_continue);
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
