// Rows of evaluations, as `qact eval` writes them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// The random tone curves, which are no part of the published benchmarks and of no mean over them.
inline constexpr const char* kTone = "tone";

// All that was chosen but the seed, the distortion and its severity: what names a curve.
struct Setting {
  std::string dataset, model, activation, placement, loss, mode, adapt, classifier;
  int64_t batch_size = 0;
  double prior = 0;  // images that the kept context is worth; mode prior alone

  auto operator<=>(const Setting&) const = default;
};

// Fields that a row does not have stay empty.
Setting setting_of(const Row& row);

// kind: scores. One setting and seed under one distortion; severity 0 is undistorted.
struct Score {
  Setting setting;
  std::string distortion;
  int severity = 0;
  int64_t seed = 0, n = 0;
  std::map<std::string, double> values;  // by the row's keys; what is null is not in it

  // NaN where the row has none.
  double value(const std::string& metric) const;
};

// In the order of the rows. Where a score was taken twice, the later one counts.
std::vector<Score> scores(const Rows& rows);

}  // namespace qact::results
