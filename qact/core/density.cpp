#include "qact/core/density.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "qact/core/mutant.h"

namespace qact::core {
namespace {

const double kInverseSqrt2Pi = 1.0 / std::sqrt(2.0 * std::numbers::pi);

// g_m(d) = He_m(d) exp(-d^2 / 2) for whole d, He_m the probabilists' Hermite polynomials.
template <int kOrders, int kReach>
const auto& hermite_table() {
  static const auto table = [] {
    std::array<std::array<double, kOrders>, 2 * kReach + 1> g{};
    for (int d = -kReach; d <= kReach; ++d) {
      auto& row = g[d + kReach];
      const double bell = std::exp(-0.5 * d * d);
      row[0] = bell;
      row[1] = d * bell;
      for (int m = 2; m < kOrders; ++m) row[m] = d * row[m - 1] - (m - 1) * row[m - 2];
    }
    return g;
  }();
  return table;
}

}  // namespace

void GaussSum::add(double value, double weight) {
  const double scaled = value / bandwidth_;
  if (!std::isfinite(scaled)) return;
  const double index = std::floor(scaled + 0.5);
  if (cells_.empty() || cells_.back().index != index) cells_.push_back({index, {}, {}});
  const double y = scaled - index;
  double term = weight;
  Cell& cell = cells_.back();
  for (int a = 0; a < kTerms; ++a) {
    cell.moment[a] += term;
    term *= y / (a + 1);
  }
}

// taylor[b] = (-1)^b / b! * sum over cells and a of moment[a] * g_{a+b}(distance)
void GaussSum::expand(double index, double* taylor) const {
  const auto& g = hermite_table<2 * kTerms, kReach>();
  std::fill(taylor, taylor + kTerms, 0.0);
  auto cell = std::lower_bound(cells_.begin(), cells_.end(), index - kReach,
                               [](const Cell& c, double at) { return c.index < at; });
  for (; cell != cells_.end() && cell->index <= index + kReach; ++cell) {
    const auto& row = g[static_cast<int>(index - cell->index) + kReach];
    for (int a = 0; a < kTerms; ++a) {
      for (int b = 0; b < kTerms; ++b) taylor[b] += cell->moment[a] * row[a + b];
    }
  }
  double factor = kInverseSqrt2Pi / bandwidth_ * (QACT_MUTANT("gauss_sum_1_percent") ? 1.01 : 1);
  for (int b = 0; b < kTerms; ++b) {
    taylor[b] *= factor;
    factor /= -(b + 1);
  }
}

void GaussSum::finish() {
  for (Cell& cell : cells_) expand(cell.index, cell.taylor);
}

double GaussSum::at(double value) const {
  const double scaled = value / bandwidth_;
  if (!std::isfinite(scaled)) return 0.0;
  const double index = std::floor(scaled + 0.5);
  const auto cell = std::lower_bound(cells_.begin(), cells_.end(), index,
                                     [](const Cell& c, double at) { return c.index < at; });
  double fresh[kTerms];
  const double* taylor = fresh;
  if (cell != cells_.end() && cell->index == index) {
    taylor = cell->taylor;
  } else {
    expand(index, fresh);
  }
  const double x = scaled - index;
  double sum = taylor[kTerms - 1];
  for (int b = kTerms - 2; b >= 0; --b) sum = sum * x + taylor[b];
  return std::max(sum, 0.0);
}

}  // namespace qact::core
