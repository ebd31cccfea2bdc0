#include "qact/toy/illustration.h"

#include <cmath>

#include "qact/toy/problem.h"

namespace qact::toy {
namespace {

constexpr int kContexts = 6;
constexpr int64_t kSamples = 80;

double rounded_point(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

results::Rows circle_illustration(base::Random& random) {
  results::Rows rows;
  for (int context = 0; context < kContexts; ++context) {
    const double angle = circle_angle(random);
    const ToyBatch batch = circle_batch(angle, kSamples, random);
    const auto x = batch.x.accessor<float, 2>();
    const auto y = batch.y.accessor<int64_t, 1>();
    results::Row points = results::Row::array();
    for (int64_t i = 0; i < kSamples; ++i) {
      points.push_back({rounded_point(x[i][0]), rounded_point(x[i][1]), y[i]});
    }
    rows.push_back({{"kind", "toy_points"},
                    {"experiment", "circle"},
                    {"context", context},
                    {"angle", rounded_point(angle)},
                    {"turn", rounded_point(kCircleTurn)},
                    {"points", points}});
  }
  return rows;
}

results::Rows monotone_illustration(base::Random& random) {
  results::Rows rows;
  for (int context = 0; context < kContexts; ++context) {
    const IncreasingMap map(random);
    results::Row values = results::Row::array();
    for (int k = 0; k <= IncreasingMap::kPieces; ++k) {
      values.push_back(rounded_point(map(static_cast<double>(k) / IncreasingMap::kPieces)));
    }
    rows.push_back({{"kind", "toy_map"},
                    {"experiment", "monotone"},
                    {"context", context},
                    {"values", values}});
  }
  return rows;
}

}  // namespace qact::toy
