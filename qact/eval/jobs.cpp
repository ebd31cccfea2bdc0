#include "qact/eval/jobs.h"

#include <algorithm>

#include "qact/adapt/method.h"

namespace qact::eval {

std::vector<Predictor> predictors(const EvaluateOptions& options) {
  std::vector<Predictor> all;
  for (const std::string& mode : options.modes) {
    for (const std::string& adapt : options.adapt) {
      if (adapt::find_method(adapt).works_in(mode)) all.push_back({mode, adapt});
    }
  }
  return all;
}

std::vector<Cell> EvaluateJob::cells(const Predictor& predictor) const {
  std::vector<Cell> all;
  for (const std::string& corruption : corruptions) {
    all.push_back({stream, predictor.mode, predictor.adapt, corruption, severity});
  }
  return all;
}

std::vector<EvaluateJob> all_jobs(const EvaluateOptions& options,
                                  const std::vector<int>& severities) {
  std::vector<EvaluateJob> jobs;
  const std::vector<Predictor> all = predictors(options);
  for (const std::string& stream : options.streams) {
    const auto add = [&](const std::vector<std::string>& corruptions) {
      for (const int severity : severities) {
        if (severity > 0) jobs.push_back({stream, corruptions, severity, all});
      }
    };
    if (std::find(severities.begin(), severities.end(), 0) != severities.end()) {
      jobs.push_back({.stream = stream, .predictors = all});
    }
    if (stream == "mixed") {
      add(mixed_corruptions(options));
    } else {
      for (const std::string& corruption : options.corruptions) add({corruption});
    }
  }
  return jobs;
}

std::vector<std::string> mixed_corruptions(const EvaluateOptions& options) {
  std::vector<std::string> names = options.corruptions;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace qact::eval
