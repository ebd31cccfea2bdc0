#include "qact/eval/row_maker.h"

#include <algorithm>
#include <set>

#include "qact/base/joined.h"
#include "qact/data/digest.h"

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
  options["dither"] = card.dither ? "on" : "off";  // what auto stands for depends on the images
  options["data-hash"] = card.data_hash;           // a folder keeps its name when its files change
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

bool RowMaker::has_frost(const Cell& cell) const {
  if (cell.corruption == "none" || images_.source() != "generated") return false;
  if (cell.stream != "mixed") return cell.corruption == "frost";
  return std::find(mixture_.begin(), mixture_.end(), "frost") != mixture_.end();
}

std::string RowMaker::data_hash(const Cell& cell) const {
  const std::string own = images_.hash(cell.corruption, cell.severity);
  if (cell.stream != "mixed" || cell.severity == 0) return own;
  std::set<std::string> all;
  for (const std::string& corruption : mixture_)
    all.insert(images_.hash(corruption, cell.severity));
  if (all.size() == 1) return own;
  data::Digest digest;
  for (const std::string& each : all) digest.add(each.data(), each.size());
  return digest.hex().substr(0, data::kShortDigest);
}

Row RowMaker::make(const std::string& kind, const std::string& classifier, const Cell& cell) const {
  const std::string& mode = cell.mode;
  const train::ModelCard& card = run_.card;
  const InferenceOptions& inference = options_.inference;
  results::Evaluation e;
  e.kind = kind;
  e.corruption = cell.corruption;
  e.severity = cell.severity;
  e.seed = run_.config.seed;
  e.model_hash = run_.hash;
  e.epoch = card.epoch;
  e.data_hash = data_hash(cell);
  results::Setting& s = e.setting;
  s.dataset = images_.dataset().name;
  s.model = card.model;
  s.activation = card.options.activation;
  s.placement = card.options.placement;
  s.loss = card.loss;
  s.mode = mode;
  s.adapt = cell.adapt;
  s.stream = cell.stream;
  if (cell.stream == "mixed") s.mixture = base::joined(mixture_, "+");
  s.classifier = classifier;
  s.batch_size = mode == "augment" ? 1 : inference.batch_size;
  if (mode == "prior") s.prior = inference.prior;
  if (mode == "augment") s.copies = inference.copies;
  if (mode == "stream") s.momentum = inference.momentum;
  s.weights = options_.weights;
  s.data_seed = options_.data_seed;
  s.source = images_.source();
  s.official = images_.official();
  if (has_frost(cell)) s.frost = images_.frost();
  s.limit = options_.limit;
  s.clean_hash = images_.hash("none", 0);
  s.training = training_of(run_.config, card, options_.weights);
  return results::to_row(e);
}

Rows RowMaker::cell_rows(const Cell& cell) const {
  Rows rows;
  for (const std::string& classifier : run_.classifiers) {
    rows.push_back(make("scores", classifier, cell));
    for (const char* which : {"top", "marginal"}) {
      rows.push_back(make("reliability", classifier, cell));
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
