// Scores to means. All that is averaged is averaged here: over corruptions for each seed, then over
// seeds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qact/results/evaluation.h"

namespace qact::results {

struct Mean {
  double mean = 0, deviation = 0;  // NaN of none; a deviation of 0 of one
  int64_t count = 0;
};
// What is no number is left out.
Mean mean_of(std::span<const double> values);

// A setting with its seeds. `metric` is a key of rows, or "drop": accuracy at severity 0 less that
// at the other one.
struct Curve {
  Setting setting;
  std::vector<Score> scores;

  std::vector<uint64_t> seeds() const;
  std::vector<int> severities() const;
  // In the order of the scores: without tone, and not uncorrupted.
  std::vector<std::string> corruptions() const;
  // The mean over `corruptions` at a severity, of each seed that was shown all of them.
  std::map<uint64_t, double> by_seed(const std::string& metric, int severity,
                                     const std::vector<std::string>& corruptions) const;
  // The mean and the deviation of these.
  Mean over_seeds(const std::string& metric, int severity,
                  const std::vector<std::string>& corruptions) const;
  double mean(const std::string& metric, int severity,
              const std::vector<std::string>& corruptions) const {
    return over_seeds(metric, severity, corruptions).mean;
  }
  // Between corruptions, of all seeds.
  double deviation(const std::string& metric, int severity,
                   const std::vector<std::string>& corruptions) const;
  // From one severity to another, of the seeds that have both.
  Mean fall(const std::string& metric, int from, int to,
            const std::vector<std::string>& corruptions) const;
  // The mean error over `severities` above 0: the mean corruption error of the CIFAR sets. NaN
  // where one of them is missing.
  double corruption_error(const std::vector<int>& severities,
                          const std::vector<std::string>& corruptions) const;
};

// In the order in which their scores first appear.
std::vector<Curve> curves(const std::vector<Score>& scores);

// Of curves that differ in the number of images alone, the one that showed most of them in all. The
// others go to `left_out`, each with the one that it gave way to.
struct LeftOut {
  Curve curve;
  Setting shown;
};
std::vector<Curve> fullest(const std::vector<Curve>& curves, std::vector<LeftOut>& left_out);

// The corruptions to compare curves by: shown at every severity to as many of their seeds as
// possible. An evaluation that is partial, or under way, does not take away from the others.
struct Common {
  std::vector<std::string> corruptions;
  struct Lacking {
    size_t curve;
    uint64_t seed;
    size_t shown;  // so many of the corruptions
  };
  std::vector<Lacking> lacking;
};
Common common_corruptions(std::span<const Curve* const> curves);

}  // namespace qact::results
