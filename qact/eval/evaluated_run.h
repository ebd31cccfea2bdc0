// The trained run that is evaluated.
#pragma once

#include <string>
#include <vector>

#include "qact/train/config.h"
#include "qact/train/model_file.h"
#include "qact/train/run_folder.h"

namespace qact::eval {

struct EvaluatedRun {
  train::TrainConfig config;
  train::ModelCard card;
  std::vector<std::string> classifiers;  // to evaluate
  std::string hash;                      // the first 16 digits of the SHA-256 of the model's file
};

struct LoadedRun {
  EvaluatedRun run;
  train::Model model;
};

// `weights`: model (the last) or best. `classifiers`: none for all that the model has. Throws where
// the model has none, or not all of these.
LoadedRun load_run(const train::RunFolder& folder, const std::string& weights,
                   const std::vector<std::string>& classifiers);

}  // namespace qact::eval
