#include "qact/run/evaluate_plan.h"

#include <algorithm>

namespace qact::run {

using results::Row;
using results::Rows;

// Copies are made as the training's augmentation places images; a plain crop where it had none.
Inference inference_in(const std::string& mode, const EvaluateOptions& options,
                       const TrainConfig& config) {
  Inference how = options.inference;
  how.mode = mode;
  how.seed = options.data_seed;
  how.augmentation = {.pad = 4,
                      .flip = config.augment == "crop-flip" || config.augment == "augmix"};
  return how;
}

Row RowMaker::config(const std::string& run) const {
  const ModelCard& card = subject_.card;
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
                   const std::string& distortion, int severity) const {
  const ModelCard& card = subject_.card;
  const Inference& how = options_.inference;
  const bool augment = mode == "augment", generated = images_.source() == "generated";
  const auto only = [&](const char* in, const auto& value) {
    return mode == in ? Row(value) : Row(nullptr);
  };
  return {{"kind", kind},
          {"dataset", images_.dataset().name},
          {"model", card.model},
          {"activation", card.options.activation},
          {"placement", card.options.placement},
          {"loss", card.loss},
          {"mode", mode},
          {"adapt", "none"},
          {"classifier", classifier},
          {"distortion", distortion},
          {"severity", severity},
          {"seed", subject_.config.seed},
          {"batch_size", augment ? 1 : how.batch_size},
          {"n", nullptr},
          {"prior", only("prior", how.prior)},
          {"copies", only("augment", how.copies)},
          {"momentum", only("stream", how.momentum)},
          {"model_hash", subject_.hash},
          {"weights", options_.weights},
          {"epoch", card.epoch},
          {"data_seed", options_.data_seed},
          {"source", images_.source()},
          {"frost", distortion == "frost" && generated ? Row(images_.frost()) : Row(nullptr)},
          {"limit", options_.limit},
          {"data_hash", images_.hash(distortion, severity)}};
}

Rows RowMaker::of_cell(const std::string& mode, const std::string& distortion, int severity) const {
  Rows rows;
  for (const std::string& classifier : subject_.classifiers) {
    rows.push_back(make("scores", mode, classifier, distortion, severity));
    for (const char* which : {"top", "marginal"}) {
      rows.push_back(make("reliability", mode, classifier, distortion, severity));
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
  const auto add = [&](const std::string& distortion, int severity) {
    EvaluateJob job{distortion, severity, {}, false};
    for (const std::string& mode : options.modes) {
      const Rows rows = maker.of_cell(mode, distortion, severity);
      const bool done =
          std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return file.has(row); });
      if (!done) job.modes.push_back(mode);
    }
    if (!job.modes.empty()) jobs.push_back(job);
  };
  const auto& severities = options.severities;
  if (std::find(severities.begin(), severities.end(), 0) != severities.end()) add("none", 0);
  for (const std::string& distortion : options.distortions) {
    for (const int severity : severities) {
      if (severity > 0) add(distortion, severity);
    }
  }
  return jobs;
}

int64_t passes(const std::string& mode, const EvaluateOptions& options) {
  if (mode == "augment") return 1 + options.inference.copies;
  return 1;
}

}  // namespace qact::run
