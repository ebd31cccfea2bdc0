// Evaluates a trained run: corruption x severity x inference mode x classifier, as rows added to
// results.jsonl in the run's folder.
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
  InferenceOptions inference;  // its mode is replaced by each of `modes`

  std::string data;      // none: what the run was trained on
  std::string data_dir;  // none: the run's
  std::string official;  // folder of the published corrupted set; none: images are corrupted here
  std::string frost = "procedural";  // or official, or a folder of textures: see open_frost()
  uint64_t data_seed = 0;
  int64_t limit = 0;  // use the first so many test images; 0: all

  std::string weights = "model";  // or best
  std::string device = "cpu";
  int threads = 0;  // 0: one per core. On the CPU, rows do not depend on it

  // t-SNE and histograms of one corruption at the severities above.
  bool diagnostics = false;
  std::string diagnostic_corruption;  // none: the first one evaluated
  int64_t diagnostic_samples = 1000;  // images of each severity

  // Written into every row: the command that repeats it, made from these options once all that was
  // left open is set; and the versions of the program.
  std::function<std::string(const EvaluateOptions&)> command;
  results::Row versions = results::Row::object();
};

// Throws std::invalid_argument, naming the option.
void check(const EvaluateOptions& options);

struct EvaluateEvents {
  // The share done of what was left; false stops the evaluation. On the calling thread.
  std::function<bool(double share)> progress;
  // Rows that were just written. From any thread, but one at a time.
  std::function<void(const results::Rows& rows)> written;
};

struct EvaluateResult {
  bool interrupted = false;  // progress() returned false; the rows so far are written
  size_t kept = 0;           // rows that were there already
  size_t made = 0;
  std::string remark;  // a warning about the test images; empty: none
  size_t stale = 0;    // rows removed, since their weights have been replaced
  results::Rows rows;  // all that the options ask for, in the order of the file
};

// Rows that are there are not computed again. The order of rows does not depend on the number of
// threads, so that an evaluation that was killed and repeated ends with the same file.
EvaluateResult evaluate(const train::RunFolder& folder, const EvaluateOptions& options,
                        const EvaluateEvents& events = {});

}  // namespace qact::eval
