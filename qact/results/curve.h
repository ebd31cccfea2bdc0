// Means of scores. All averaging happens here: over corruptions for each seed, then over seeds.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "qact/results/score.h"

namespace qact::results {

struct Mean {
  double mean = 0, deviation = 0;  // standard deviation. NaN for no value; deviation 0 for one
  int64_t count = 0;
};
// Skips values that are not finite.
Mean mean_of(std::span<const double> values);

// All scores of one setting. `metric` is a key of rows, or "drop": accuracy at severity 0 minus
// accuracy at the given severity.
struct Curve {
  Setting setting;
  std::vector<Score> scores;

  std::vector<uint64_t> seeds() const;
  std::vector<int> severities() const;
  // In the order of the scores, without tone.
  std::vector<std::string> corruptions() const;
  // For each seed the mean over `corruptions` at a severity; without seeds that lack one of them.
  std::map<uint64_t, double> by_seed(const std::string& metric, int severity,
                                     const std::vector<std::string>& corruptions) const;
  // The mean of by_seed() and the deviation between seeds.
  Mean over_seeds(const std::string& metric, int severity,
                  const std::vector<std::string>& corruptions) const;
  double mean(const std::string& metric, int severity,
              const std::vector<std::string>& corruptions) const {
    return over_seeds(metric, severity, corruptions).mean;
  }
  // The deviation between corruptions, each averaged over seeds.
  double deviation(const std::string& metric, int severity,
                   const std::vector<std::string>& corruptions) const;
  // The metric at severity `from` minus that at `to`, of the seeds that have both.
  Mean drop(const std::string& metric, int from, int to,
            const std::vector<std::string>& corruptions) const;
  // The mean error over `severities` above 0, as CIFAR-10-C's mean corruption error. NaN where one
  // of them is missing.
  double corruption_error(const std::vector<int>& severities,
                          const std::vector<std::string>& corruptions) const;
};

// In the order in which their scores first appear.
std::vector<Curve> curves(const std::vector<Score>& scores);

// Of curves that differ only in the number of images, the one evaluated on most images in all. The
// others go to `left_out`, each with the setting of the curve that is kept instead.
struct LeftOut {
  Curve curve;
  Setting kept;
};
std::vector<Curve> most_complete(const std::vector<Curve>& curves, std::vector<LeftOut>& left_out);

// The corruptions by which to compare curves: those that as many seeds as possible have at every
// severity. A seed whose evaluation is incomplete does not reduce them.
struct CommonCorruptions {
  std::vector<std::string> names;
  struct Incomplete {
    size_t curve;
    uint64_t seed;
    size_t count;  // of the common corruptions that it has
  };
  std::vector<Incomplete> incomplete;
};
CommonCorruptions common_corruptions(std::span<const Curve* const> curves);

}  // namespace qact::results
