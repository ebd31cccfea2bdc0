#include "qact/results/evaluation.h"

#include <limits>
#include <tuple>

namespace qact::results {
namespace {

template <class T>
void read_if_there(const Row& row, const char* key, T& value) {
  if (row.contains(key) && !row[key].is_null()) value = field<T>(row, key);
}

}  // namespace

Setting setting_of(const Row& row) {
  Setting s;
  read_if_there(row, "dataset", s.dataset);
  read_if_there(row, "model", s.model);
  read_if_there(row, "activation", s.activation);
  read_if_there(row, "placement", s.placement);
  read_if_there(row, "loss", s.loss);
  read_if_there(row, "mode", s.mode);
  read_if_there(row, "adapt", s.adapt);
  read_if_there(row, "classifier", s.classifier);
  read_if_there(row, "batch_size", s.batch_size);
  read_if_there(row, "prior", s.prior);
  return s;
}

double Score::value(const std::string& metric) const {
  const auto found = values.find(metric);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::vector<Score> scores(const Rows& rows) {
  std::vector<Score> all;
  std::map<std::tuple<Setting, int64_t, std::string, int>, size_t> where;
  for (const Row& row : of_kind(rows, "scores")) {
    Score score{.setting = setting_of(row),
                .distortion = field<std::string>(row, "distortion"),
                .severity = field<int>(row, "severity"),
                .seed = field<int64_t>(row, "seed"),
                .n = field<int64_t>(row, "n"),
                .values = {}};
    field<double>(row, "accuracy");  // all else may be missing
    for (const auto& [key, value] : row.items()) {
      if (value.is_number()) score.values[key] = value.get<double>();
    }
    const auto [at, is_new] = where.try_emplace(
        {score.setting, score.seed, score.distortion, score.severity}, all.size());
    if (is_new) {
      all.push_back(std::move(score));
    } else {
      all[at->second] = std::move(score);
    }
  }
  return all;
}

}  // namespace qact::results
