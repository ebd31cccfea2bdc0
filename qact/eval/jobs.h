// The jobs of an evaluation.
#pragma once

#include <string>
#include <vector>

#include "qact/eval/evaluate.h"

namespace qact::eval {

// How images are classified.
struct Predictor {
  std::string mode, adapt = "none";
};

// All pairs of a mode and a method of adaptation: methods do not work in every mode.
std::vector<Predictor> predictors(const EvaluateOptions& options);

// What one row of scores is of: a predictor on the images of one corruption at one severity.
struct Cell {
  std::string stream = "single", mode, adapt = "none", corruption = "none";
  int severity = 0;
};

// One stream of images, through the predictors whose rows are missing; or the diagnostics of one
// mode (diagnostics.h).
struct EvaluateJob {
  std::string stream = "single";
  std::vector<std::string> corruptions = {"none"};  // several in the stream mixed
  int severity = 0;
  std::vector<Predictor> predictors;
  bool diagnostics = false;

  // In the order of `corruptions`.
  std::vector<Cell> cells(const Predictor& predictor) const;
};

// All jobs without diagnostics, in the order of the file.
std::vector<EvaluateJob> all_jobs(const EvaluateOptions& options,
                                  const std::vector<int>& severities);

// The corruptions of the stream mixed, sorted: their order on the command line changes nothing.
std::vector<std::string> mixed_corruptions(const EvaluateOptions& options);

}  // namespace qact::eval
