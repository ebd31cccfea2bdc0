#include "qact/metrics/tsne.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "qact/base/parallel.h"
#include "qact/metrics/neighbour_probabilities.h"
#include "qact/metrics/principal_components.h"

namespace qact::metrics {
namespace {

using base::parallel_for;

// Early exaggeration, with the usual constants: a stronger attraction and less momentum while
// clusters form.
struct Phase {
  int iterations;
  float exaggeration, momentum;
};
constexpr Phase kEarly = {250, 12, 0.5f};
constexpr float kLateMomentum = 0.8f, kStartSpread = 1e-4f;

typedef float Lanes __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4;

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

float sum(const Lanes& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

// The forces on point i: sums over j of p_ij w_ij (y_i - y_j), w_ij^2 (y_i - y_j), and w_ij.
struct Force {
  float attraction[2], repulsion[2], weight;
};

// x, y and p are padded to whole vectors with points far away, so that w = 0, and p = 0. Point i
// itself is in the sums: y_i - y_i = 0, and its w_ii = 1 is subtracted at the end.
Force force_on(int64_t i, const std::vector<float>& x, const std::vector<float>& y,
               const float* p) {
  const Lanes own_x = x[i] - Lanes{}, own_y = y[i] - Lanes{};
  Lanes ax = {}, ay = {}, rx = {}, ry = {}, weight = {};
  for (int64_t j = 0; j < static_cast<int64_t>(x.size()); j += kLanes) {
    const Lanes dx = own_x - load(&x[j]), dy = own_y - load(&y[j]);
    const Lanes w = 1.0f / (1.0f + (dx * dx + dy * dy));
    const Lanes pull = load(&p[j]) * w, push = w * w;
    ax += pull * dx;
    ay += pull * dy;
    rx += push * dx;
    ry += push * dy;
    weight += w;
  }
  return {{sum(ax), sum(ay)}, {sum(rx), sum(ry)}, sum(weight) - 1};
}

// One coordinate of all points, updated with momentum and the usual gains: a step grows while its
// sign stays, and shrinks when it changes.
struct Coordinate {
  Coordinate(int64_t n, int64_t padded) : at(padded, kFarAway), step(n), gain(n) {}

  void reset() {
    std::fill(step.begin(), step.end(), 0.0f);
    std::fill(gain.begin(), gain.end(), 1.0f);
  }

  void move(int64_t i, float gradient, float momentum, float rate) {
    gain[i] = std::max(step[i] * gradient < 0 ? gain[i] + 0.2f : gain[i] * 0.8f, 0.01f);
    step[i] = momentum * step[i] - rate * gain[i] * gradient;
    at[i] += step[i];
  }

  void centre() {
    const auto n = static_cast<int64_t>(step.size());
    double mean = 0;
    for (int64_t i = 0; i < n; ++i) mean += at[i];
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) at[i] -= static_cast<float>(mean);
  }

  static constexpr float kFarAway = 1e19f;  // whose square is still finite
  std::vector<float> at, step, gain;
};

// Starts from the first two principal components, scaled so that the first has a small deviation.
void initialise_plane(const std::vector<float>& components, int64_t columns, Coordinate& x,
                      Coordinate& y) {
  const auto n = static_cast<int64_t>(x.step.size());
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += std::pow(components[i * columns], 2);
  const double spread = std::sqrt(squares / static_cast<double>(n));
  const float scale = spread > 0 ? static_cast<float>(kStartSpread / spread) : 0;
  for (int64_t i = 0; i < n; ++i) {
    x.at[i] = components[i * columns] * scale;
    y.at[i] = columns > 1 ? components[i * columns + 1] * scale : 0;
  }
}

void descend(const NeighbourProbabilities& p, const Phase& phase, int threads, Coordinate& x,
             Coordinate& y) {
  const auto n = static_cast<int64_t>(x.step.size());
  const float rate = std::max(static_cast<float>(n) / kEarly.exaggeration / 4, 50.0f);
  std::vector<Force> forces(n);
  x.reset();
  y.reset();
  for (int iteration = 0; iteration < phase.iterations; ++iteration) {
    parallel_for(n, threads, 64, [&](int64_t i) { forces[i] = force_on(i, x.at, y.at, p.row(i)); });
    double total = 0;
    for (const Force& force : forces) total += force.weight;
    const auto share = static_cast<float>(1 / total);
    const auto gradient = [&](const Force& f, int axis) {
      return 4 * (phase.exaggeration * f.attraction[axis] - share * f.repulsion[axis]);
    };
    for (int64_t i = 0; i < n; ++i) {
      x.move(i, gradient(forces[i], 0), phase.momentum, rate);
      y.move(i, gradient(forces[i], 1), phase.momentum, rate);
    }
    x.centre();
    y.centre();
  }
}

void check(std::span<const float> values, int64_t dims, const TsneOptions& options) {
  const auto size = static_cast<int64_t>(values.size());
  const auto fail = [](const std::string& what) { throw std::invalid_argument("[tsne] " + what); };
  if (dims < 1 || size % dims != 0) {
    fail("expected whole points of " + std::to_string(dims) + " dimensions, got " +
         std::to_string(size) + " values");
  }
  if (size / dims > kMostTsnePoints) {
    fail("expected at most " + std::to_string(kMostTsnePoints) + " points, got " +
         std::to_string(size / dims));
  }
  if (!(options.perplexity >= 1) || options.components < 1 || options.iterations < 0) {
    fail("expected a perplexity of 1 or more, components and iterations, got " +
         std::to_string(options.perplexity) + ", " + std::to_string(options.components) + " and " +
         std::to_string(options.iterations));
  }
  for (int64_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[i])) {
      fail("expected finite values, got " + std::to_string(values[i]) + " in point " +
           std::to_string(i / dims));
    }
  }
}

}  // namespace

std::vector<float> tsne(std::span<const float> values, int64_t dims, const TsneOptions& options) {
  check(values, dims, options);
  const int64_t n = static_cast<int64_t>(values.size()) / dims;
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  if (n < 2) return std::vector<float>(2 * n, 0.0f);

  const int64_t columns = std::min<int64_t>(options.components, dims);
  const std::vector<float> components =
      principal_components(values, dims, columns, options.threads);
  Coordinate x(n, padded), y(n, padded);
  initialise_plane(components, columns, x, y);
  const double perplexity = std::min(options.perplexity, std::max(1.0, (n - 1) / 3.0));
  const NeighbourProbabilities p(components, columns, padded, perplexity, options.threads);
  Phase early = kEarly;
  early.iterations = std::min(options.iterations, kEarly.iterations);
  descend(p, early, options.threads, x, y);
  descend(p, {options.iterations - early.iterations, 1, kLateMomentum}, options.threads, x, y);

  std::vector<float> plane(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    plane[2 * i] = x.at[i];
    plane[2 * i + 1] = y.at[i];
  }
  return plane;
}

}  // namespace qact::metrics
