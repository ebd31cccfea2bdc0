#include "qact/metrics/predictions.h"

#include <sstream>
#include <stdexcept>

namespace qact::metrics {
namespace {

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}

}  // namespace

int64_t Predictions::top(int64_t i) const {
  int64_t best = 0;
  for (int64_t k = 1; k < classes; ++k) {
    if (at(i, k) > at(i, best)) best = k;
  }
  return best;
}

void Predictions::check(const char* metric) const {
  if (classes < 1) fail("[", metric, "] expected at least one class, got ", classes);
  if (static_cast<int64_t>(probabilities.size()) != size() * classes) {
    fail("[", metric, "] expected ", size() * classes, " probabilities for ", size(),
         " labels and ", classes, " classes, got ", probabilities.size());
  }
  for (int64_t i = 0; i < size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      fail("[", metric, "] expected labels in 0..", classes - 1, ", got ", labels[i], " at ", i);
    }
    for (int64_t k = 0; k < classes; ++k) {
      if (!(at(i, k) >= 0 && at(i, k) <= 1)) {
        fail("[", metric, "] expected probabilities in [0, 1], got ", at(i, k), " for class ", k,
             " at ", i);
      }
    }
  }
}

}  // namespace qact::metrics
