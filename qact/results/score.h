// The rows of kind "scores": the metrics of one cell.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qact/results/evaluation.h"

namespace qact::results {

// One setting and seed under one corruption and severity; severity 0 is clean.
struct Score {
  Setting setting;
  std::string corruption;
  int severity = 0;
  uint64_t seed = 0;
  int64_t n = 0;
  std::map<std::string, double> values;  // metrics by the row's keys, without those that are null

  // NaN where the row has none.
  double value(const std::string& metric) const;
};

// In the order of the rows. The same score given twice counts once; given with two values, it is an
// error.
std::vector<Score> scores(const Rows& rows);

}  // namespace qact::results
