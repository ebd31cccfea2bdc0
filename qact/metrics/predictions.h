// Predicted class probabilities and the true labels: the input of every metric of probabilities.
// A view: nothing is copied.
#pragma once

#include <cstdint>
#include <span>

namespace qact::metrics {

struct Predictions {
  std::span<const float> probabilities;  // [n][classes]
  std::span<const int64_t> labels;       // [n], each in 0..classes - 1
  int64_t classes = 0;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  float at(int64_t i, int64_t k) const { return probabilities[i * classes + k]; }

  // The class of the highest probability; of equals, the first.
  int64_t top(int64_t i) const;
  // Throws std::invalid_argument where sizes do not match, a label is out of range, or a
  // probability is not in [0, 1]; `metric` is for the message.
  void check(const char* metric) const;
};

}  // namespace qact::metrics
