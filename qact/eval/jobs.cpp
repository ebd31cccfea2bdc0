#include "qact/eval/jobs.h"

#include <algorithm>

namespace qact::eval {

std::vector<EvaluateJob> missing_jobs(const EvaluateOptions& options, const RowMaker& maker,
                                      const RowFile& file) {
  std::vector<EvaluateJob> jobs;
  const auto add = [&](const std::string& corruption, int severity) {
    EvaluateJob job{corruption, severity, {}, false};
    for (const std::string& mode : options.modes) {
      const results::Rows rows = maker.cell_rows(mode, corruption, severity);
      const bool done = std::all_of(rows.begin(), rows.end(),
                                    [&](const results::Row& row) { return file.has(row); });
      if (!done) job.modes.push_back(mode);
    }
    if (!job.modes.empty()) jobs.push_back(job);
  };
  const auto& severities = options.severities;
  if (std::find(severities.begin(), severities.end(), 0) != severities.end()) add("none", 0);
  for (const std::string& corruption : options.corruptions) {
    for (const int severity : severities) {
      if (severity > 0) add(corruption, severity);
    }
  }
  return jobs;
}

}  // namespace qact::eval
