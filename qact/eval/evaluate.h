// Evaluates a trained run: stream x corruption x severity x inference mode x method of adaptation x
// classifier, as rows added to results.jsonl in the run's folder.
#pragma once

#include <functional>
#include <string>

#include "qact/dist/world.h"
#include "qact/eval/evaluate_options.h"
#include "qact/results/row.h"
#include "qact/train/run_folder.h"

namespace qact::eval {

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
//
// All ranks of a world call it alike, and share the jobs. The first one writes the rows, the same
// ones in the same order as one process, and it alone has them in its result.
EvaluateResult evaluate(const train::RunFolder& folder, const EvaluateOptions& options,
                        const EvaluateEvents& events = {}, const dist::World& world = {});

}  // namespace qact::eval
