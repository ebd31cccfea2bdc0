// Rows of results for an evaluation.
#pragma once

#include <string>
#include <vector>

#include "qact/eval/evaluate.h"
#include "qact/eval/evaluated_run.h"
#include "qact/eval/jobs.h"
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
        mixture_(mixed_corruptions(options)),
        command_(options.command ? options.command(options) : "") {}

  // The configuration of the run; `name` is its folder's.
  results::Row config(const std::string& name) const;
  results::Row make(const std::string& kind, const std::string& classifier, const Cell& cell) const;
  // All rows of a cell, in the order of the file.
  results::Rows cell_rows(const Cell& cell) const;

  // Completes a row with the number of images, the results, the versions and the command.
  results::Row finish(results::Row row, int64_t n, const results::Row& results) const;

 private:
  bool has_frost(const Cell& cell) const;
  // Of all images that the results depend on.
  std::string data_hash(const Cell& cell) const;

  const EvaluatedRun& run_;
  const EvaluateOptions& options_;
  const TestImages& images_;
  const std::vector<std::string> mixture_;  // of the stream mixed
  const std::string command_;
};

}  // namespace qact::eval
