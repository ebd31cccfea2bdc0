#include "qact/eval/row_maker.h"

namespace qact::eval {

using results::Row;
using results::Rows;

namespace {

// Options that cannot change what is learnt, or that every row has as a field of its own.
constexpr const char* kNotTraining[] = {
    "model",          "activation", "placement",  "loss",       "seed",
    "data-dir",       "workers",    "save-every", "cuda-graph", "checkpoint-activations",
    "fit-classifiers"};

}  // namespace

results::Training training_of(const train::TrainConfig& config, const train::ModelCard& card,
                              const std::string& weights) {
  Row options = to_json(config);
  for (const char* name : kNotTraining) options.erase(name);
  // The order of sums depends on the kind of device, and on a CPU on the number of threads.
  const std::string device = config.device.substr(0, config.device.find(':'));
  options["device"] = device;
  if (device != "cpu") options.erase("threads");
  options["data-hash"] = card.data_hash;  // a folder keeps its name when its files change
  // Early stopping and the choice of the best epoch decide the epoch themselves. Otherwise it says
  // how far the training has come.
  if (weights == "model" && config.early_stopping == 0) options["trained-epochs"] = card.epoch;
  return {options.dump()};
}

Row RowMaker::config(const std::string& name) const {
  const train::ModelCard& card = run_.card;
  return {{"kind", "config"},
          {"run", name},
          {"dataset", images_.dataset().name},
          {"model", card.model},
          {"activation", card.options.activation},
          {"placement", card.options.placement},
          {"loss", card.loss},
          {"seed", run_.config.seed},
          {"model_hash", run_.hash},
          {"weights", options_.weights},
          {"epoch", card.epoch},
          {"card",
           {{"classes", card.options.classes},
            {"class_names", card.class_names},
            {"channels", card.options.channels},
            {"image_size", card.options.image_size}}},
          {"config", to_json(run_.config)}};
}

Row RowMaker::make(const std::string& kind, const std::string& mode, const std::string& classifier,
                   const std::string& corruption, int severity) const {
  const train::ModelCard& card = run_.card;
  const InferenceOptions& inference = options_.inference;
  results::Evaluation e;
  e.kind = kind;
  e.corruption = corruption;
  e.severity = severity;
  e.seed = run_.config.seed;
  e.model_hash = run_.hash;
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
  s.batch_size = mode == "augment" ? 1 : inference.batch_size;
  if (mode == "prior") s.prior = inference.prior;
  if (mode == "augment") s.copies = inference.copies;
  if (mode == "stream") s.momentum = inference.momentum;
  s.weights = options_.weights;
  s.data_seed = options_.data_seed;
  s.source = images_.source();
  s.official = images_.official();
  if (corruption == "frost" && s.source == "generated") s.frost = images_.frost();
  s.limit = options_.limit;
  s.clean_hash = images_.hash("none", 0);
  s.training = training_of(run_.config, card, options_.weights);
  return results::to_row(e);
}

Rows RowMaker::cell_rows(const std::string& mode, const std::string& corruption,
                         int severity) const {
  Rows rows;
  for (const std::string& classifier : run_.classifiers) {
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

}  // namespace qact::eval
