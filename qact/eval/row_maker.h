// Rows of results for an evaluation.
#pragma once

#include <string>
#include <vector>

#include "qact/eval/evaluate.h"
#include "qact/eval/evaluated_run.h"
#include "qact/eval/test_images.h"
#include "qact/results/evaluation.h"

namespace qact::eval {

// How a run was trained, as its rows say it: all options that can change what is learnt.
results::Training training_of(const train::TrainConfig& config, const train::ModelCard& card,
                              const std::string& weights);

// Makes rows without their results, with all that identifies and describes them.
class RowMaker {
 public:
  RowMaker(const EvaluatedRun& run, const EvaluateOptions& options, const TestImages& images)
      : run_(run),
        options_(options),
        images_(images),
        command_(options.command ? options.command(options) : "") {}

  // The configuration of the run; `name` is its folder's.
  results::Row config(const std::string& name) const;
  results::Row make(const std::string& kind, const std::string& mode, const std::string& classifier,
                    const std::string& corruption, int severity) const;
  // All rows of one mode, corruption and severity, in the order of the file.
  results::Rows cell_rows(const std::string& mode, const std::string& corruption,
                          int severity) const;

  // Completes a row with the number of images, the results, the versions and the command.
  results::Row finish(results::Row row, int64_t n, const results::Row& results) const;

 private:
  const EvaluatedRun& run_;
  const EvaluateOptions& options_;
  const TestImages& images_;
  const std::string command_;
};

}  // namespace qact::eval
