// The bounds of gradients by code, for any device's layer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "qact/core/reference.h"
#include "tests/core/cases.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {

// Gradients that concentrate in the tails, where a code's values differ most.
struct TailContext {
  std::vector<double> x;
  double mean = 0, deviation = 1;

  TailContext(const char* distribution, int64_t n, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::student_t_distribution<double> student(3);
    std::uniform_real_distribution<double> uniform;
    const std::string name = distribution;
    for (int64_t i = 0; i < n; ++i) {
      const double v = normal(random);
      x.push_back(name == "normal"      ? v
                  : name == "uniform"   ? uniform(random)
                  : name == "student"   ? student(random)
                  : name == "bimodal"   ? (i % 2 ? 2 : -2) + 0.5 * v
                  : name == "rectified" ? std::max(v, 0.0)
                                        : std::exp(v));
    }
  }
  void take_moments() {
    const double n = static_cast<double>(x.size());
    mean = deviation = 0;
    for (const double v : x) mean += v / n;
    for (const double v : x) deviation += (v - mean) * (v - mean) / n;
    deviation = std::sqrt(deviation + 1e-5);
  }
};

// The definition's density, from values that are first moved to the next thousandth.
inline std::vector<double> density_of(const std::vector<double>& z,
                                      const reference::Parameters& p) {
  constexpr double kStep = 1e-3, kReach = 8;
  const auto [low, high] = std::minmax_element(z.begin(), z.end());
  const double first = *low - kReach * p.bandwidth;
  const auto size = static_cast<size_t>((*high - first) / kStep + kReach * p.bandwidth / kStep) + 2;
  std::vector<double> mass(size), at_grid(size, -1);
  const auto negatives = std::count_if(z.begin(), z.end(), [](double v) { return v < 0; });
  const auto positives = static_cast<int64_t>(z.size()) - negatives;
  for (const double v : z) {
    mass[static_cast<size_t>(std::lround((v - first) / kStep))] +=
        v < 0 ? (1 - p.positive_share) / static_cast<double>(negatives + 1)
              : p.positive_share / static_cast<double>(positives + 1);
  }
  const auto reach = static_cast<int64_t>(kReach * p.bandwidth / kStep);
  std::vector<double> kernel;
  for (int64_t k = -reach; k <= reach; ++k) {
    const double t = static_cast<double>(k) * kStep / p.bandwidth;
    kernel.push_back(std::exp(-0.5 * t * t) / p.bandwidth / std::sqrt(2 * M_PI));
  }
  std::vector<double> out;
  for (const double v : z) {  // every 20th thousandth, and linearly between those
    const double place = (v - first) / kStep / 20;
    const auto node = static_cast<int64_t>(place);
    double ends[2];
    for (int e = 0; e < 2; ++e) {
      const int64_t at = std::min<int64_t>((node + e) * 20, static_cast<int64_t>(size) - 1);
      if (at_grid[at] < 0) {
        double sum = 0;
        for (int64_t k = std::max<int64_t>(0, at - reach);
             k <= std::min<int64_t>(at + reach, static_cast<int64_t>(size) - 1); ++k) {
          sum += mass[k] * kernel[k - at + reach];
        }
        at_grid[at] = sum;
      }
      ends[e] = at_grid[at];
    }
    out.push_back(ends[0] + (ends[1] - ends[0]) * (place - static_cast<double>(node)));
  }
  return out;
}

inline double relative(const std::vector<double>& found, const std::vector<double>& expected) {
  double off = 0, size = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    off += std::pow(found[i] - expected[i], 2);
    size += expected[i] * expected[i];
  }
  return std::sqrt(off / size);
}

// grad_x in norm: 2% for gradients drawn from N(0,1), 6% for z^2 and for those of the outermost 1%.
// run_of(x, grad_y, affines, quantile, layout) is a run of the layer.
template <class RunOf>
void expect_bounds(const char* distribution, int64_t n, DType dtype, Layout layout, int levels,
                   const RunOf& run_of) {
  SCOPED_TRACE(std::string(distribution) + " " + std::to_string(n) + " " + name(dtype) + " " +
               name(layout) + " " + std::to_string(levels));
  TailContext context(distribution, n, 151);
  const Shape shape{n % 100 ? 4 : 20, 2, n / (n % 100 ? 4 : 20)};
  Tensor x(shape, dtype, layout);
  for (int64_t c = 0; c < 2; ++c) x.set(c, context.x);
  context.x = x.get(0);  // rounded
  context.take_moments();
  std::vector<double> z, size;
  for (const double v : context.x) z.push_back((v - context.mean) / context.deviation);
  for (const double v : z) size.push_back(std::abs(v));
  std::nth_element(size.begin(), size.begin() + n * 99 / 100, size.end());
  const double outer = size[n * 99 / 100];
  Quantile quantile;
  quantile.levels = levels;
  Affines affines(2);
  for (int c = 0; c < 2; ++c) affines.weight_in[c] = affines.weight_out[c] = 1;
  for (int c = 0; c < 2; ++c) affines.bias_in[c] = affines.bias_out[c] = 0;
  reference::LayerParameters p = affines.of(0);
  p.quantile.levels = levels;
  const std::vector<double> density = density_of(z, p.quantile);
  const std::vector<double> noise = draw(Distribution::normal, n, 152);
  for (const bool tail : {false, true}) {
    Tensor grad_y(shape, dtype, layout);
    std::vector<double> first, second;
    for (int64_t i = 0; i < n; ++i) {
      first.push_back(tail ? (std::abs(z[i]) > outer) * noise[i] : noise[i]);
      second.push_back(z[i] * z[i]);
    }
    grad_y.set(0, first);
    grad_y.set(1, second);
    const auto run = run_of(x, grad_y, affines, quantile, layout);
    for (int64_t c = 0; c < 2; ++c) {
      const auto oracle =
          reference::layer_gradient(context.x, grad_y.get(c), run.levels_of(c), density, p);
      EXPECT_LE(relative(run.grad_x.get(c), oracle.x), c == 0 && !tail ? 0.02 : 0.06)
          << (c == 1 ? "z^2"
              : tail ? "tail"
                     : "noise");
    }
  }
}

// The distributions, lengths, layouts and types over which they hold.
template <class RunOf>
void expect_all_bounds(const RunOf& run_of) {
  for (const char* distribution :
       {"normal", "uniform", "student", "bimodal", "rectified", "log-normal"}) {
    for (const int64_t n : {300, 2048, 40000}) {
      for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
        expect_bounds(distribution, n, DType::f32, layout, 100, run_of);
      }
      expect_bounds(distribution, n, DType::bf16, Layout::contiguous, 127, run_of);
    }
    expect_bounds(distribution, 300000, DType::f32, Layout::contiguous, 100, run_of);
  }
}

}  // namespace qact::core::testing
