// Random shares that add up to one.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "qact/base/random.h"

namespace qact::base {

// Gamma(shape, 1) for a shape in (0, 1]: Ahrens and Dieter's algorithm GS (1974).
inline double gamma_variate(double shape, Random& random) {
  const double bound = 1 + shape / std::numbers::e;
  for (;;) {
    const double p = bound * random.uniform(), u = random.uniform();
    if (p <= 1) {
      const double x = std::pow(p, 1 / shape);
      if (u <= std::exp(-x)) return x;
    } else {
      const double x = -std::log((bound - p) / shape);
      if (u <= std::pow(x, shape - 1)) return x;
    }
  }
}

// Dirichlet(concentration, ..., concentration), for a concentration in (0, 1].
inline std::vector<double> dirichlet(double concentration, size_t count, Random& random) {
  std::vector<double> shares(count);
  double sum = 0;
  for (double& share : shares) sum += share = gamma_variate(concentration, random);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace qact::base
