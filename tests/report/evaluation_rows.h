// Rows of small evaluations whose means are known.
#pragma once

#include <string>

#include "tests/results/example_rows.h"

namespace qact::report {

inline results::Row score_row(const std::string& activation, const std::string& mode,
                              const std::string& corruption, int severity, double accuracy,
                              uint64_t seed = 0) {
  results::Evaluation e = results::example_evaluation(corruption, severity);
  e.setting.activation = activation;
  e.setting.mode = mode;
  e.seed = seed;
  e.model_hash = activation + std::to_string(seed);
  return results::score_row(e, accuracy);
}

// Accuracy 0.9 clean; 0.8 and 0.6 under two corruptions for QAct; ReLU has a third.
inline results::Rows example_rows() {
  return {
      score_row("relu", "tracked", "none", 0, 0.95), score_row("relu", "tracked", "fog", 1, 0.5),
      score_row("relu", "tracked", "snow", 1, 0.4),  score_row("relu", "tracked", "frost", 1, 0.1),
      score_row("qact", "batch", "none", 0, 0.9),    score_row("qact", "batch", "fog", 1, 0.8),
      score_row("qact", "batch", "snow", 1, 0.6),    score_row("qact", "batch", "tone", 1, 0.85)};
}

// QAct under the same corruptions, trained with another learning rate.
inline results::Rows with_lr(const char* lr, uint64_t seed = 0) {
  results::Rows rows = {score_row("qact", "batch", "none", 0, 0.7, seed),
                        score_row("qact", "batch", "fog", 1, 0.4, seed),
                        score_row("qact", "batch", "snow", 1, 0.2, seed)};
  for (results::Row& row : rows) {
    row["training"]["lr"] = nlohmann::ordered_json::parse(lr);
    row["model_hash"] = std::string("lr") + lr + std::to_string(seed);
  }
  return rows;
}

inline results::Rows joined(results::Rows a, const results::Rows& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace qact::report
