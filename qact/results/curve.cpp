#include "qact/results/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace qact::results {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool counts(const Score& score, int severity, const std::vector<std::string>& corruptions) {
  return score.severity == severity && (severity == 0 || is_among(score.corruption, corruptions));
}

std::vector<double> values_of(const std::map<uint64_t, double>& by_seed) {
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return values;
}

std::map<uint64_t, double> difference(const std::map<uint64_t, double>& a,
                                      const std::map<uint64_t, double>& b) {
  std::map<uint64_t, double> out;
  for (const auto& [seed, value] : a) {
    const auto found = b.find(seed);
    if (found != b.end()) out[seed] = value - found->second;
  }
  return out;
}

int64_t image_count(const Curve& curve) {
  int64_t images = 0;
  for (const Score& score : curve.scores) images += score.n;
  return images;
}

// Whether only the number of images differs. Without a row of frost the textures are unknown.
bool differ_in_limit_only(const Setting& a, const Setting& b) {
  if (a.limit == b.limit) return false;
  Setting other = b;
  other.limit = a.limit;
  if (!a.frost || !b.frost) other.frost = a.frost;
  return a == other;
}

// More images in all; where that is equal, the higher limit, of which 0 (all images) is the
// highest.
bool is_more_complete(const Curve& a, const Curve& b) {
  const auto order = [](const Curve& curve) {
    const int64_t limit = curve.setting.limit;
    return std::pair(image_count(curve), limit == 0 ? std::numeric_limits<int64_t>::max() : limit);
  };
  return order(a) > order(b);
}

// The corruptions that a seed has at all of its severities.
std::set<std::string> complete_corruptions(const Curve& curve, uint64_t seed) {
  std::map<std::string, std::set<int>> found;
  std::set<int> severities;
  for (const Score& score : curve.scores) {
    if (score.seed != seed || score.severity == 0 || is_tone_curve(score.corruption)) continue;
    found[score.corruption].insert(score.severity);
    severities.insert(score.severity);
  }
  std::set<std::string> complete;
  for (const auto& [name, at] : found) {
    if (at == severities) complete.insert(name);
  }
  return complete;
}

}  // namespace

Mean mean_of(std::span<const double> values) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    sum += v;
    ++count;
  }
  if (count == 0) return {kNone, kNone, 0};
  const auto n = static_cast<double>(count);
  for (const double v : values) {
    if (std::isfinite(v)) squares += (v - sum / n) * (v - sum / n);
  }
  return {sum / n, count > 1 ? std::sqrt(squares / (n - 1)) : 0, count};
}

std::vector<uint64_t> Curve::seeds() const {
  std::set<uint64_t> all;
  for (const Score& score : scores) all.insert(score.seed);
  return {all.begin(), all.end()};
}

std::vector<int> Curve::severities() const {
  std::set<int> all;
  for (const Score& score : scores) all.insert(score.severity);
  return {all.begin(), all.end()};
}

std::vector<std::string> Curve::corruptions() const {
  std::vector<std::string> names;
  for (const Score& score : scores) {
    if (score.severity == 0 || is_tone_curve(score.corruption)) continue;
    if (!is_among(score.corruption, names)) names.push_back(score.corruption);
  }
  return names;
}

std::map<uint64_t, double> Curve::by_seed(const std::string& metric, int severity,
                                          const std::vector<std::string>& corruptions) const {
  if (metric == "drop") {
    return difference(by_seed("accuracy", 0, corruptions),
                      by_seed("accuracy", severity, corruptions));
  }
  std::map<uint64_t, std::vector<double>> values;
  for (const Score& score : scores) {
    if (counts(score, severity, corruptions)) values[score.seed].push_back(score.value(metric));
  }
  std::map<uint64_t, double> means;
  for (const auto& [seed, all] : values) {
    const Mean mean = mean_of(all);
    const auto expected = severity == 0 ? 1 : static_cast<int64_t>(corruptions.size());
    if (mean.count == expected) means[seed] = mean.mean;
  }
  return means;
}

Mean Curve::over_seeds(const std::string& metric, int severity,
                       const std::vector<std::string>& corruptions) const {
  return mean_of(values_of(by_seed(metric, severity, corruptions)));
}

double Curve::deviation(const std::string& metric, int severity,
                        const std::vector<std::string>& corruptions) const {
  std::vector<double> values;
  if (severity == 0) return 0;
  for (const std::string& corruption : corruptions) {
    values.push_back(mean(metric, severity, {corruption}));
  }
  return mean_of(values).deviation;
}

Mean Curve::drop(const std::string& metric, int from, int to,
                 const std::vector<std::string>& corruptions) const {
  return mean_of(
      values_of(difference(by_seed(metric, from, corruptions), by_seed(metric, to, corruptions))));
}

double Curve::corruption_error(const std::vector<int>& severities,
                               const std::vector<std::string>& corruptions) const {
  double sum = 0;
  int64_t count = 0;
  for (const int severity : severities) {
    if (severity == 0) continue;
    sum += 1 - mean("accuracy", severity, corruptions);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kNone;
}

std::vector<Curve> curves(const std::vector<Score>& scores) {
  std::vector<Curve> all;
  std::map<Setting, size_t> known;
  for (const Score& score : scores) {
    const auto [at, fresh] = known.try_emplace(score.setting, all.size());
    if (fresh) all.push_back({.setting = score.setting, .scores = {}});
    all[at->second].scores.push_back(score);
  }
  return all;
}

std::vector<Curve> most_complete(const std::vector<Curve>& curves, std::vector<LeftOut>& left_out) {
  std::vector<const Curve*> order, kept;
  for (const Curve& curve : curves) order.push_back(&curve);
  std::stable_sort(order.begin(), order.end(),
                   [](const Curve* a, const Curve* b) { return is_more_complete(*a, *b); });
  for (const Curve* curve : order) {
    const auto better = std::find_if(kept.begin(), kept.end(), [&](const Curve* other) {
      return differ_in_limit_only(curve->setting, other->setting);
    });
    if (better == kept.end()) {
      kept.push_back(curve);
    } else {
      left_out.push_back({*curve, (*better)->setting});
    }
  }
  std::sort(kept.begin(), kept.end());  // back to the order of `curves`
  std::vector<Curve> out;
  for (const Curve* curve : kept) out.push_back(*curve);
  return out;
}

CommonCorruptions common_corruptions(std::span<const Curve* const> curves) {
  struct Unit {
    size_t curve;
    uint64_t seed;
    std::set<std::string> complete;
  };
  std::vector<Unit> units;
  std::vector<std::string> order;
  for (size_t i = 0; i < curves.size(); ++i) {
    for (const uint64_t seed : curves[i]->seeds()) {
      units.push_back({i, seed, complete_corruptions(*curves[i], seed)});
    }
    for (const std::string& name : curves[i]->corruptions()) {
      if (!is_among(name, order)) order.push_back(name);
    }
  }
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    return a.complete.size() > b.complete.size();
  });
  // Of the k most complete units for each k: maximises k times the corruptions that all k have.
  std::set<std::string> common(order.begin(), order.end()), best;
  size_t most = 0;
  for (size_t k = 0; k < units.size(); ++k) {
    std::erase_if(common, [&](const auto& name) { return !units[k].complete.contains(name); });
    if ((k + 1) * common.size() < most || common.empty()) continue;
    most = (k + 1) * common.size();
    best = common;
  }
  CommonCorruptions found;
  for (const std::string& name : order) {
    if (best.contains(name)) found.names.push_back(name);
  }
  for (const Unit& unit : units) {
    const auto count = static_cast<size_t>(std::count_if(
        best.begin(), best.end(), [&](const auto& name) { return unit.complete.contains(name); }));
    if (count < best.size()) found.incomplete.push_back({unit.curve, unit.seed, count});
  }
  return found;
}

}  // namespace qact::results
