#include "tests/core/layer_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/core/tolerance.h"

namespace qact::core::testing {
namespace {

using reference::LayerGradient;

struct Moments {
  double mean = 0, variance = 0;

  explicit Moments(const std::vector<double>& v) {
    long double sum = 0, square = 0;  // so that long channels do not judge by their own rounding
    for (const double x : v) sum += x;
    const long double centre = sum / v.size();
    for (const double x : v) square += (x - centre) * (x - centre);
    mean = static_cast<double>(centre);
    variance = static_cast<double>(square / v.size());
  }
};

std::vector<double> activation(const std::vector<int>& level, int levels) {
  std::vector<double> out;
  for (const int k : level) out.push_back(static_cast<double>(k) / levels);
  return out;
}

std::vector<double> normalised(const std::vector<double>& v, const Moments& moments, double eps) {
  std::vector<double> out;
  for (const double x : v) {
    out.push_back((x - moments.mean) / std::sqrt(moments.variance + eps));
  }
  return out;
}

std::vector<double> z_of(const LayerCase& given) {
  const reference::LayerParameters& p = given.parameters;
  std::vector<double> z = normalised(given.x, Moments(given.x), p.eps);
  for (double& v : z) v = v * p.weight_in + p.bias_in;
  return z;
}

// From the first value, which sums are taken about.
double farthest(const std::vector<double>& x) {
  double out = 0;
  for (const double v : x) out = std::max(out, std::abs(v - x[0]));
  return out;
}

// Or all within a node of the density, which comes to the same.
bool has_few_values(const LayerCase& given, std::vector<double> z) {
  if (std::sqrt(Moments(z).variance) < given.parameters.quantile.bandwidth / 4) return true;
  std::sort(z.begin(), z.end());
  return std::unique(z.begin(), z.end()) - z.begin() < tolerance::kFewValues;
}

// The sizes of what is added up: an error is measured by them, as the sums themselves cancel.
struct Sizes {
  double bias_out = 0, weight_out = 0, bias_in = 0, weight_in = 0;
  // As far as dy, its mean and its part along the output go, which are summed apart.
  double apart_bias_in = 0, apart_weight_in = 0, highest = 0;
  double grad_x = 0, inner = 0;

  Sizes(const LayerCase& given, const LayerFound& found, const LayerGradient& oracle,
        const std::vector<double>& density) {
    const reference::LayerParameters& p = given.parameters;
    const double n = static_cast<double>(given.x.size());
    const std::vector<double> u = activation(found.level, p.quantile.levels);
    const Moments in(given.x), out(u);
    const std::vector<double> xhat = normalised(given.x, in, p.eps);
    const std::vector<double> yhat = normalised(u, out, p.eps);
    const double s2 = std::sqrt(out.variance + p.eps);
    double squares = 0;
    for (size_t i = 0; i < given.x.size(); ++i) {
      const double dy = std::abs(given.grad_y[i]);
      bias_out += dy;
      weight_out += dy * (u[i] + out.mean) / s2;
      bias_in += std::abs(oracle.z[i]);
      weight_in += std::abs(oracle.z[i] * xhat[i]);
      const double apart =
          density[i] * std::abs(p.weight_out) / s2 *
          (dy + std::abs(oracle.bias_out / n) + std::abs(yhat[i] * oracle.weight_out / n));
      apart_bias_in += apart;
      apart_weight_in += apart * std::abs(xhat[i]);
      highest = std::max(highest, apart);
      squares += oracle.z[i] * oracle.z[i];
    }
    inner = std::abs(p.weight_in) / std::sqrt(in.variance + p.eps);
    grad_x = inner * std::sqrt(squares);
  }
};

void expect_affine(const LayerCase& given, const LayerFound& found, const LayerGradient& oracle,
                   const Sizes& sizes, bool few) {
  const double rounding = tolerance::sum(given.dtype);
  const double density = tolerance::density_sum(given.kept, few);
  const double apart = tolerance::apart(given.kept, given.dtype);
  const auto expect = [&](const char* what, double value, double expected, double allowed) {
    EXPECT_NEAR(value, expected, allowed + tolerance::stored(given.affine) * std::abs(expected))
        << what;
  };
  expect("bias_out", found.bias_out, oracle.bias_out, rounding * sizes.bias_out);
  expect("weight_out", found.weight_out, oracle.weight_out, rounding * sizes.weight_out);
  expect("bias_in", found.bias_in, oracle.bias_in,
         density * sizes.bias_in + apart * sizes.apart_bias_in);
  expect("weight_in", found.weight_in, oracle.weight_in,
         density * sizes.weight_in + apart * sizes.apart_weight_in);
}

// Each value for itself, and all together.
void expect_grad_x(const LayerCase& given, const LayerFound& found, const LayerGradient& oracle,
                   const Sizes& sizes, bool few) {
  const double density = tolerance::density(given.kept, given.exact, few);
  const double apart = tolerance::apart(given.kept, given.dtype) * sizes.inner * sizes.highest;
  double squares = 0, worst = 0;
  for (size_t i = 0; i < given.x.size(); ++i) {
    const double stored =
        tolerance::stored(given.dtype) * std::abs(oracle.x[i]) + tolerance::smallest(given.dtype);
    const double off = std::max(0.0, std::abs(found.grad_x[i] - oracle.x[i]) - stored);
    squares += off * off;
    worst = std::max(worst, off);
  }
  EXPECT_LE(std::sqrt(squares),
            density * sizes.grad_x + apart * std::sqrt(static_cast<double>(given.x.size())))
      << "grad_x";
  EXPECT_LE(worst, tolerance::one_value(given.kept) * density * sizes.inner * sizes.highest + apart)
      << "grad_x, one value";
}

}  // namespace

// F(z) * (levels + 1), rounded down, is a level. It is looked up just below and just above z.
void expect_levels(const std::vector<double>& z, const std::vector<int>& found,
                   const reference::Parameters& p, double slack,
                   const std::function<double(double)>& rounding) {
  const reference::Neuron neuron(z, p);
  std::vector<double> upto = {0};
  for (const double weight : neuron.weight) upto.push_back(upto.back() + weight);
  const auto level_at = [&](double at, double more) {
    const auto past = std::upper_bound(neuron.value.begin(), neuron.value.end(), at);
    const double level = (p.levels + 1) * upto[past - neuron.value.begin()] + more;
    return std::clamp(static_cast<int>(std::floor(level)), 0, p.levels);
  };
  for (size_t i = 0; i < z.size(); ++i) {
    const double off = rounding(z[i]);
    // Whatever rounding does to its neighbours, a value counts itself.
    const auto [own, past] = std::equal_range(neuron.value.begin(), neuron.value.end(), z[i]);
    const double itself = upto[past - neuron.value.begin()] - upto[own - neuron.value.begin()];
    ASSERT_GE(found[i], level_at(z[i] - off, (off > 0 ? (p.levels + 1) * itself : 0) - slack))
        << "level of z = " << z[i];
    ASSERT_LE(found[i], level_at(z[i] + off, slack)) << "level of z = " << z[i];
  }
}

void expect_levels(const LayerCase& given, const LayerFound& found) {
  const reference::LayerParameters& p = given.parameters;
  const Moments in(given.x);
  const double scale = std::abs(p.weight_in) / std::sqrt(in.variance + p.eps);
  const double off = scale * tolerance::moments(given.dtype) * farthest(given.x);
  expect_levels(z_of(given), found.level, p.quantile, tolerance::level(given.exact), [&](double z) {
    return tolerance::z(given.dtype, given.exact, z, scale * in.mean, off);
  });
}

void expect_norms(const LayerCase& given, const LayerFound& found) {
  const reference::LayerParameters& p = given.parameters;
  const Moments in(given.x), out(activation(found.level, p.quantile.levels));
  const double far = farthest(given.x), rounding = tolerance::moments(given.dtype);
  EXPECT_NEAR(found.mean_in, in.mean, rounding * far + 0x1p-52 * std::abs(in.mean)) << "mean_in";
  // A first value beyond ten deviations is noticed, and the sums are taken again.
  const double offset = std::pow(given.x[0] - in.mean, 2);
  EXPECT_NEAR(found.var_in, in.variance,
              rounding * (in.variance + std::min(offset, 100 * in.variance)))
      << "var_in";
  EXPECT_NEAR(found.mean_out, out.mean, tolerance::kLevelMoments) << "mean_out";
  EXPECT_NEAR(found.var_out, out.variance, tolerance::kLevelMoments) << "var_out";
  const double scale = p.weight_out / std::sqrt(out.variance + p.eps);
  for (size_t i = 0; i < found.y.size(); ++i) {
    const double u = static_cast<double>(found.level[i]) / p.quantile.levels;
    const double expected = scale * (u - out.mean) + p.bias_out;
    ASSERT_NEAR(found.y[i], expected,
                tolerance::stored(given.dtype) * std::abs(expected) +
                    tolerance::y(given.dtype) * (std::abs(scale) + std::abs(p.bias_out)))
        << "y";
  }
}

void expect_gradient(const LayerCase& given, const LayerFound& found) {
  std::vector<int64_t> all(given.x.size());
  std::iota(all.begin(), all.end(), 0);
  expect_sparse_gradient(given, found, all);
}

void expect_sparse_gradient(const LayerCase& given, const LayerFound& found,
                            const std::vector<int64_t>& places) {
  const std::vector<double> z = z_of(given);
  const reference::Neuron neuron(z, given.parameters.quantile);
  // Elsewhere any density will do, as what it multiplies is 0 but for rounding.
  std::vector<double> density(z.size(), 0.5);
  for (const int64_t i : places) {
    density[i] = reference::density(neuron, z[i], given.parameters.quantile.bandwidth);
  }
  const LayerGradient oracle =
      reference::layer_gradient(given.x, given.grad_y, found.level, density, given.parameters);
  const Sizes sizes(given, found, oracle, density);
  const bool few = has_few_values(given, z);
  expect_affine(given, found, oracle, sizes, few);
  expect_grad_x(given, found, oracle, sizes, few);
}

std::vector<double> sparse_gradient(const std::vector<int>& level,
                                    const std::vector<int64_t>& places, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> sparse, k;
  for (const int64_t i : places) {
    sparse.push_back(normal(random));
    k.push_back(level[i]);
  }
  const Moments of_k(k), of_sparse(sparse);
  double both = 0;
  for (size_t j = 0; j < k.size(); ++j) both += sparse[j] * (k[j] - of_k.mean);
  const double slope = both / (of_k.variance * static_cast<double>(k.size()));
  std::vector<double> out;
  for (const int each : level) out.push_back(0.75 + 0.01 * each);
  for (size_t j = 0; j < k.size(); ++j) {
    out[places[j]] += 4 * (sparse[j] - of_sparse.mean - slope * (k[j] - of_k.mean));
  }
  return out;
}

std::vector<double> with_trend(std::vector<double> grad_y, const std::vector<double>& x) {
  const Moments moments(x);
  const std::vector<double> xhat = normalised(x, moments, 1e-5);
  for (size_t i = 0; i < x.size(); ++i) {
    grad_y[i] += 0.75 + 0.5 * std::clamp(xhat[i], -2.0, 2.0);
  }
  return grad_y;
}

}  // namespace qact::core::testing
