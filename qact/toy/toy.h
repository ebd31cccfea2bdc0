// The toy experiment: networks that differ in one activation, trained on batches of one context
// each and tested on new contexts.
#pragma once

#include <string>
#include <vector>

#include "qact/base/jobs.h"
#include "qact/results/row.h"

namespace qact::toy {

struct ToyOptions {
  std::vector<std::string> experiments = {"circle", "monotone"};
  int64_t seeds = 3;
  int64_t steps = 1500;
  int64_t width = 64;
  int64_t batch_size = 256;  // even: a context has half of its samples in each class
  int64_t contexts = 1000;
  double learning_rate = 3e-3;
  int threads = 0;  // 0: one per core; results do not depend on it
};

// Throws std::invalid_argument where an option makes no sense.
void check(const ToyOptions& options);

// A toy_score row for each network and seed, and rows that illustrate each problem
// (illustration.h).
results::Rows run_toy(const ToyOptions& options, const base::Progress& progress = {});

}  // namespace qact::toy
