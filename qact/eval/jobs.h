// The jobs of an evaluation.
#pragma once

#include <string>
#include <vector>

#include "qact/eval/evaluate.h"
#include "qact/eval/row_file.h"
#include "qact/eval/row_maker.h"

namespace qact::eval {

// The images of one corruption at one severity, in the modes whose rows are missing; or the
// diagnostics of one mode (diagnostics.h).
struct EvaluateJob {
  std::string corruption = "none";
  int severity = 0;
  std::vector<std::string> modes;
  bool diagnostics = false;
};

// Those, without diagnostics, whose rows are not all in the file yet.
std::vector<EvaluateJob> missing_jobs(const EvaluateOptions& options, const RowMaker& maker,
                                      const RowFile& file);

}  // namespace qact::eval
