#include "qact/data/check.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "qact/base/fail.h"

namespace qact::data {
namespace {

// Published moments have three or four digits.
constexpr double kTolerance = 0.001;

template <class Number>
std::string list(const std::vector<Number>& values) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(4);
  for (size_t i = 0; i < values.size(); ++i) out << (i ? " " : "") << values[i];
  return out.str();
}

std::string shape(int64_t count, image::Size size) {
  return std::to_string(count) + " of " + std::to_string(size.width) + "x" +
         std::to_string(size.height) + "x" + std::to_string(size.channels);
}

std::vector<int64_t> balance_of(const Split& split) {
  std::vector<int64_t> out(split.classes);
  for (const int64_t label : split.labels) ++out[label];
  return out;
}

std::string describe(const std::vector<int64_t>& balance) {
  const bool even = std::equal(balance.begin() + 1, balance.end(), balance.begin());
  return even ? std::to_string(balance[0]) + " each" : list(balance);
}

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > kTolerance) return false;
  }
  return a.size() == b.size();
}

Finding check_images(const std::string& where, const DatasetInfo& info, int64_t count,
                     const Split& split) {
  return {where + " images", shape(count, info.size), shape(split.count(), split.size),
          count == split.count() && info.size == split.size};
}

Finding check_balance(const std::string& where, const DatasetInfo& info,
                      const std::vector<int64_t>& counts, const Split& split) {
  const std::vector<int64_t> even(info.classes, split.count() / info.classes);
  const std::vector<int64_t>& expected = counts.empty() ? even : counts;
  const std::vector<int64_t> found = balance_of(split);
  return {where + " classes", describe(expected), describe(found), expected == found};
}

}  // namespace

std::vector<Finding> check(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info;
  std::vector<Finding> out;
  const auto check_split = [&](const std::string& where, const SplitId& id) {
    const bool train = id.split == SplitName::train;
    const Split split = dataset.read(id);
    out.push_back(check_images(where, info, train ? info.train : info.test, split));
    out.push_back(
        check_balance(where, info, train ? info.train_balance : info.test_balance, split));
    if (!train || info.moments.mean.empty()) return;
    const Moments found = moments_of(split);
    const Moments& known = info.moments;
    out.push_back(
        {where + " mean", list(known.mean), list(found.mean), close(known.mean, found.mean)});
    out.push_back({where + " std", list(known.std), list(found.std), close(known.std, found.std)});
  };
  if (info.clean.empty()) {
    check_split("train", {SplitName::train});
    check_split("test", {SplitName::test});
    return out;
  }
  for (const std::string& corruption : info.corruptions) {
    for (int severity = 1; severity <= info.severities; ++severity) {
      const std::string where = corruption + " " + std::to_string(severity);
      if (info.train > 0) check_split("train " + where, {SplitName::train, corruption, severity});
      check_split((info.train > 0 ? "test " : "") + where, {SplitName::test, corruption, severity});
    }
  }
  return out;
}

void expect_counts(const DatasetInfo& info, const fs::path& folder) {
  const Dataset dataset{info, folder};
  for (const SplitName name : {SplitName::train, SplitName::test}) {
    const int64_t count = name == SplitName::train ? info.train : info.test;
    if (count == 0) continue;
    const SplitId id = info.clean.empty() ? SplitId{name} : SplitId{name, info.corruptions[0], 1};
    const Finding found = check_images(to_string(name), info, count, dataset.read(id));
    if (!found.good) {
      base::fail("fetch", "expected ", found.what, ": ", found.expected, ", got ", found.found);
    }
  }
}

}  // namespace qact::data
