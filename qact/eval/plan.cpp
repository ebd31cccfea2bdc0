#include "qact/eval/plan.h"

#include <algorithm>

namespace qact::eval {

using results::Row;
using results::Rows;

namespace {

// What cannot change what is learnt, or is a field of every row.
constexpr const char* kNotTraining[] = {
    "model",          "activation", "placement",  "loss",       "seed",
    "data-dir",       "workers",    "save-every", "cuda-graph", "checkpoint-activations",
    "fit-classifiers"};

}  // namespace

// Early stopping, and the choice of the best epoch, decide the epoch; else it says how far the
// training has come.
results::Training training_of(const train::TrainConfig& config, const train::ModelCard& card,
                              const std::string& weights) {
  Row options = to_json(config);
  for (const char* name : kNotTraining) options.erase(name);
  // Kernels add up in an order of their own: that of a kind of device, on a CPU that of its
  // threads.
  const std::string device = config.device.substr(0, config.device.find(':'));
  options["device"] = device;
  if (device != "cpu") options.erase("threads");
  options["data-hash"] = card.data_hash;  // a folder keeps its name when its files change
  if (weights == "model" && config.early_stopping == 0) options["trained-epochs"] = card.epoch;
  return {options.dump()};
}

// Copies are made as the training's augmentation places images; a plain crop where it had none.
Inference inference_in(const std::string& mode, const EvaluateOptions& options,
                       const train::TrainConfig& config) {
  Inference how = options.inference;
  how.mode = mode;
  how.seed = options.data_seed;
  how.augmentation = {.pad = 4,
                      .flip = config.augment == "crop-flip" || config.augment == "augmix"};
  return how;
}

Row RowMaker::config(const std::string& run) const {
  const train::ModelCard& card = subject_.card;
  return {{"kind", "config"},
          {"run", run},
          {"dataset", images_.dataset().name},
          {"model", card.model},
          {"activation", card.options.activation},
          {"placement", card.options.placement},
          {"loss", card.loss},
          {"seed", subject_.config.seed},
          {"model_hash", subject_.hash},
          {"weights", options_.weights},
          {"epoch", card.epoch},
          {"card",
           {{"classes", card.options.classes},
            {"class_names", card.class_names},
            {"channels", card.options.channels},
            {"image_size", card.options.image_size}}},
          {"config", to_json(subject_.config)}};
}

Row RowMaker::make(const std::string& kind, const std::string& mode, const std::string& classifier,
                   const std::string& corruption, int severity) const {
  const train::ModelCard& card = subject_.card;
  const Inference& how = options_.inference;
  results::Evaluation e;
  e.kind = kind;
  e.corruption = corruption;
  e.severity = severity;
  e.seed = subject_.config.seed;
  e.model_hash = subject_.hash;
  e.epoch = card.epoch;
  e.data_hash = images_.hash(corruption, severity);
  results::Setting& s = e.setting;
  s.dataset = images_.dataset().name;
  s.model = card.model;
  s.activation = card.options.activation;
  s.placement = card.options.placement;
  s.loss = card.loss;
  s.mode = mode;
  s.adapt = "none";
  s.classifier = classifier;
  s.batch_size = mode == "augment" ? 1 : how.batch_size;
  if (mode == "prior") s.prior = how.prior;
  if (mode == "augment") s.copies = how.copies;
  if (mode == "stream") s.momentum = how.momentum;
  s.weights = options_.weights;
  s.data_seed = options_.data_seed;
  s.source = images_.source();
  s.official = images_.official();
  if (corruption == "frost" && s.source == "generated") s.frost = images_.frost();
  s.limit = options_.limit;
  s.clean_hash = images_.hash("none", 0);
  s.training = training_of(subject_.config, card, options_.weights);
  return results::to_row(e);
}

Rows RowMaker::of_cell(const std::string& mode, const std::string& corruption, int severity) const {
  Rows rows;
  for (const std::string& classifier : subject_.classifiers) {
    rows.push_back(make("scores", mode, classifier, corruption, severity));
    for (const char* which : {"top", "marginal"}) {
      rows.push_back(make("reliability", mode, classifier, corruption, severity));
      rows.back()["which"] = which;
    }
  }
  return rows;
}

Row RowMaker::finish(Row row, int64_t n, const Row& results) const {
  row["n"] = n;
  row.update(results);
  row["versions"] = options_.versions;
  row["command"] = command_;
  return row;
}

std::vector<EvaluateJob> plan(const EvaluateOptions& options, const RowMaker& maker,
                              const RowFile& file) {
  std::vector<EvaluateJob> jobs;
  const auto add = [&](const std::string& corruption, int severity) {
    EvaluateJob job{corruption, severity, {}, false};
    for (const std::string& mode : options.modes) {
      const Rows rows = maker.of_cell(mode, corruption, severity);
      const bool done =
          std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return file.has(row); });
      if (!done) job.modes.push_back(mode);
    }
    if (!job.modes.empty()) jobs.push_back(job);
  };
  const auto& severities = options.severities;
  if (std::find(severities.begin(), severities.end(), 0) != severities.end()) add("none", 0);
  for (const std::string& corruption : options.corruptions) {
    for (const int severity : severities) {
      if (severity > 0) add(corruption, severity);
    }
  }
  return jobs;
}

int64_t passes(const std::string& mode, const EvaluateOptions& options) {
  if (mode == "augment") return 1 + options.inference.copies;
  return 1;
}

}  // namespace qact::eval
