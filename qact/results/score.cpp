#include "qact/results/score.h"

#include <limits>
#include <tuple>

#include "qact/base/fail.h"
#include "qact/results/disambiguate.h"

namespace qact::results {
namespace {

Score score_of(const Evaluation& e, const Row& row) {
  if (!e.severity) refuse_field(row, "severity");
  Score score{.setting = e.setting,
              .corruption = e.corruption,
              .severity = *e.severity,
              .seed = e.seed,
              .n = field<int64_t>(row, "n"),
              .values = {}};
  field<double>(row, "accuracy");  // all else may be missing
  for (const auto& [key, value] : row.items()) {
    if (!value.is_number() || evaluation_keys().contains(key)) continue;
    score.values[key] = value.get<double>();
  }
  return score;
}

[[noreturn]] void refuse_two(const Row& first, const Row& second) {
  const auto say = [](const Row& row) {
    return row["accuracy"].dump() + " (by " + row.value("command", "no command") + ", " +
           row.value("versions", Row::object()).dump() + ")";
  };
  base::fail("results", "expected one accuracy of model ", first["model_hash"].dump(), " under ",
             first["corruption"].dump(), " of severity ", first["severity"].dump(), ", got ",
             say(first), " and ", say(second), ": leave one of them out");
}

}  // namespace

double Score::value(const std::string& metric) const {
  const auto found = values.find(metric);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::vector<Score> scores(const Rows& rows) {
  std::vector<Score> all;
  std::map<std::tuple<Setting, uint64_t, std::string, int>, size_t> known;  // the row's index
  for (const Evaluation& e : evaluations(rows)) {
    if (e.kind != "scores") continue;
    Score score = score_of(e, rows[e.row]);
    const auto [at, fresh] =
        known.try_emplace({e.setting, e.seed, e.corruption, *e.severity}, e.row);
    if (fresh) {
      all.push_back(std::move(score));
    } else if (rows[at->second]["accuracy"] != rows[e.row]["accuracy"]) {
      refuse_two(rows[at->second], rows[e.row]);
    }
  }
  return all;
}

}  // namespace qact::results
