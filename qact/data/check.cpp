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

Finding images(const std::string& where, const Dataset& dataset, int64_t count,
               const Split& split) {
  return {where + " images", shape(count, dataset.size), shape(split.count(), split.size),
          count == split.count() && dataset.size == split.size};
}

Finding balance(const std::string& where, const Dataset& dataset,
                const std::vector<int64_t>& counts, const Split& split) {
  const std::vector<int64_t> even(dataset.classes, split.count() / dataset.classes);
  const std::vector<int64_t>& expected = counts.empty() ? even : counts;
  const std::vector<int64_t> found = balance_of(split);
  return {where + " classes", describe(expected), describe(found), expected == found};
}

}  // namespace

std::vector<Finding> check(const Opened& opened) {
  const Dataset& dataset = opened.dataset;
  std::vector<Finding> out;
  const auto part = [&](const std::string& where, const Which& which) {
    const bool train = which.part == Part::kTrain;
    const Split split = opened.read(which);
    out.push_back(images(where, dataset, train ? dataset.train : dataset.test, split));
    out.push_back(
        balance(where, dataset, train ? dataset.train_balance : dataset.test_balance, split));
    if (!train || dataset.moments.mean.empty()) return;
    const Moments found = moments_of(split);
    const Moments& known = dataset.moments;
    out.push_back(
        {where + " mean", list(known.mean), list(found.mean), close(known.mean, found.mean)});
    out.push_back({where + " std", list(known.std), list(found.std), close(known.std, found.std)});
  };
  if (dataset.clean.empty()) {
    part("train", {Part::kTrain});
    part("test", {Part::kTest});
    return out;
  }
  for (const std::string& corruption : dataset.corruptions) {
    for (int severity = 1; severity <= dataset.severities; ++severity) {
      const std::string where = corruption + " " + std::to_string(severity);
      if (dataset.train > 0) part("train " + where, {Part::kTrain, corruption, severity});
      part((dataset.train > 0 ? "test " : "") + where, {Part::kTest, corruption, severity});
    }
  }
  return out;
}

void expect_counts(const Dataset& dataset, const fs::path& folder) {
  const Opened opened{dataset, folder};
  const bool clean = dataset.clean.empty();
  for (const Part part : {Part::kTrain, Part::kTest}) {
    const int64_t count = part == Part::kTrain ? dataset.train : dataset.test;
    if (count == 0) continue;
    const Split split = opened.read(clean ? Which{part} : Which{part, dataset.corruptions[0], 1});
    const Finding found = images(part == Part::kTrain ? "train" : "test", dataset, count, split);
    if (!found.good) {
      base::fail("fetch", "expected ", found.what, ": ", found.expected, ", got ", found.found);
    }
  }
}

}  // namespace qact::data
