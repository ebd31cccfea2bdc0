// Evaluation of a trained run: dataset x corruption x severity x way of inference x classifier,
// as rows added to results.jsonl in the run's folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qact/eval/inference.h"
#include "qact/results/row.h"
#include "qact/train/run_folder.h"

namespace qact::eval {

struct EvaluateOptions {
  std::vector<std::string> modes = {"tracked", "batch"};
  std::vector<std::string> classifiers;  // none: all that the model has
  std::vector<std::string> corruptions;  // as corrupt::select_corruptions() takes them
  std::vector<int> severities = {0, 1, 2, 3, 4, 5};
  Inference inference;  // sizes and shares; the mode is each of `modes`

  std::string data;      // none: what the run was trained on
  std::string data_dir;  // none: the run's
  std::string official;  // folder of the published corrupted set; none: corruptions are made
  std::string frost = "procedural";  // or official, or a folder of textures: as open_frost()
  uint64_t data_seed = 0;
  int64_t limit = 0;  // the first so many test images; 0: all

  std::string weights = "model";  // or best
  std::string device = "cpu";
  int threads = 0;  // 0: one per core. Rows do not depend on it, on the CPU

  // t-SNE and histograms of one corruption at the severities above.
  bool diagnostics = false;
  std::string diagnostic_corruption;  // none: the first one evaluated
  int64_t diagnostic_samples = 1000;  // images of each severity

  // Kept in every row: the command that repeats it, given these options with all that was left to
  // the run named; and versions.
  std::function<std::string(const EvaluateOptions&)> command;
  results::Row versions = results::Row::object();
};

// Throws std::invalid_argument, naming the option.
void check(const EvaluateOptions& options);

struct EvaluateEvents {
  // The share done of what is left to do; false stops. On the calling thread.
  std::function<bool(double share)> progress;
  // Rows that were just written, one caller at a time, from any thread.
  std::function<void(const results::Rows& rows)> written;
};

struct EvaluateResult {
  bool interrupted = false;  // progress() said so; the rows so far are written
  size_t kept = 0;           // rows that were there already
  size_t made = 0;
  std::string remark;  // on the test images, for the user; empty: none
  size_t stale = 0;    // removed: of weights that have been trained on since
  results::Rows rows;  // all of this evaluation, in the order of the file
};

// A row that is there is not computed again. Rows are written in one order whatever the number
// of threads, so that an evaluation that was killed and gone on with ends with the same file.
EvaluateResult evaluate(const train::RunFolder& folder, const EvaluateOptions& options,
                        const EvaluateEvents& events = {});

}  // namespace qact::eval
