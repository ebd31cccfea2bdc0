// What an evaluation has to do: jobs, and the rows that each is to make.
#pragma once

#include <string>
#include <vector>

#include "qact/eval/evaluate.h"
#include "qact/eval/row_file.h"
#include "qact/eval/test_images.h"

namespace qact::eval {

// What is evaluated.
struct Subject {
  train::TrainConfig config;
  train::ModelCard card;
  std::vector<std::string> classifiers;
  std::string hash;  // the first 16 digits of the SHA-256 of its file
};

// How to work in `mode`.
Inference inference_in(const std::string& mode, const EvaluateOptions& options,
                       const train::TrainConfig& config);

// What a run was trained with, as its rows say it.
results::Training training_of(const train::TrainConfig& config, const train::ModelCard& card,
                              const std::string& weights);

// Rows without their results: all that identifies and describes them.
class RowMaker {
 public:
  RowMaker(const Subject& subject, const EvaluateOptions& options, const TestImages& images)
      : subject_(subject),
        options_(options),
        images_(images),
        command_(options.command ? options.command(options) : "") {}

  results::Row config(const std::string& run) const;
  results::Row make(const std::string& kind, const std::string& mode, const std::string& classifier,
                    const std::string& corruption, int severity) const;
  // All that one corruption at one severity makes in one mode, in the order of the file.
  results::Rows of_cell(const std::string& mode, const std::string& corruption, int severity) const;

  // Ends a row with the number of images, its results, the versions and the command.
  results::Row finish(results::Row row, int64_t n, const results::Row& results) const;

 private:
  const Subject& subject_;
  const EvaluateOptions& options_;
  const TestImages& images_;
  const std::string command_;
};

// The images of one corruption at one severity, in the modes that lack rows; or the diagnostics of
// one mode (diagnostics.h).
struct EvaluateJob {
  std::string corruption = "none";
  int severity = 0;
  std::vector<std::string> modes;
  bool diagnostics = false;
};

std::vector<EvaluateJob> plan(const EvaluateOptions& options, const RowMaker& maker,
                              const RowFile& file);

// Images that pass through the network in `mode` for each that is classified.
int64_t passes(const std::string& mode, const EvaluateOptions& options);

}  // namespace qact::eval
