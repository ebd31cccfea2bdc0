// The backward pass of short contexts, which ranks them again; see short_kernels.h. Included once
// per SIMD level.
#pragma once

#include "qact/core/cpu/short_density.h"
#include "qact/core/cpu/short_kernels.h"

namespace qact::core::cpu {
namespace {

// Of a value below 0, or of others.
template <class Real>
inline Vec<Real> weight_of(const ShortNorm<Real>& norm, int side) {
  Real weights[kLanes<Real>];
  for (int h = 0; h < kLanes<Real>; h += kDoubles) {
    put(weights + h, load<Doubles>(norm.weight[side] + h));
  }
  return load<Vec<Real>>(weights);
}

// Of values in ascending order: what those before each give to its density, in scratch.density, and
// the waves between it and the one before, in scratch.waves.
template <class Real>
inline void density_below(int32_t n, const ShortRule& rule, const ShortNorm<Real>& norm,
                          const Real* terms, ShortScratch<Real>& scratch) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const V below = weight_of<Real>(norm, 0), above = weight_of<Real>(norm, 1);
  const Real inverse = (Real)(1 / rule.bandwidth);
  Waves<Real> sum{};
  V last = load<V>(scratch.z);
  for (int32_t i = 0; i < n; ++i) {
    const V z = load<V>(scratch.z + i * kN);
    const Waves<Real> waves = waves_of<Real>((z - last) * inverse);
    const V weight = select([&](int p) { return z.part[p] >= 0; }, above, below);
    last = z;
    sum.decay(waves);
    sum.add(weight);
    store(scratch.density + i * kN, sum.density(terms));
    store(scratch.weight + i * kN, weight);
    Real* to = scratch.waves + 4 * i * kN;
    store(to, waves.real);
    store(to + kN, waves.imaginary);
    store(to + 2 * kN, waves.real3);
    store(to + 3 * kN, waves.imaginary3);
  }
}

// What the bounds give, where they are near any value.
template <class Real>
inline void add_bounds(int32_t n, const ShortRule& rule, const ShortNorm<Real>& norm,
                       const Real* terms, ShortScratch<Real>& scratch) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  bool near[2] = {};
  const double reach = kFarGap * rule.bandwidth - rule.bound;
  for (int l = 0; l < kN; ++l) {
    near[0] |= (double)scratch.z[l] < reach;
    near[1] |= -(double)scratch.z[(n - 1) * kN + l] < reach;
  }
  const Real inverse = (Real)(1 / rule.bandwidth);
  for (const int side : {0, 1}) {
    if (!near[side] || QACT_MUTANT("short_bounds")) continue;
    const Real bound = (Real)(side ? rule.bound : -rule.bound);
    const V weight = weight_of<Real>(norm, side);
    for (int32_t i = 0; i < n; ++i) {
      const V d = load<V>(scratch.z + i * kN) - bound;
      const V away = maximum(d, V{} - d);
      const V share = weight * waves_of<Real>(away * inverse).density(terms);
      store(scratch.density + i * kN, load<V>(scratch.density + i * kN) + share);
    }
  }
}

// Sums over rows: of dy, dy * k, f, f * k, f * dy, f * xhat, f * xhat * dy and f * xhat * k.
template <class Real>
struct ShortSums {
  static constexpr int kSums = 8, kRows = 32;  // as many in float
  Vec<Real> some[kSums] = {};
  double of[kSums][kLanes<Real>] = {};

  void add(const Vec<Real>& dy, const Vec<Real>& k, const Vec<Real>& f, const Vec<Real>& f_xhat) {
    const Vec<Real> terms[kSums] = {dy, dy * k, f, f * k, f * dy, f_xhat, f_xhat * dy, f_xhat * k};
    for (int s = 0; s < kSums; ++s) some[s] += terms[s];
  }
  void flush() {
    for (int s = 0; s < kSums; ++s) {
      Real lanes[kLanes<Real>];
      store(lanes, some[s]);
      for (int l = 0; l < kLanes<Real>; ++l) of[s][l] += (double)lanes[l];
      some[s] = {};
    }
  }
};

// Ties resolved, and the density complete: what those after each value give to it.
template <class Real>
inline void sum_short(int32_t n, const ShortRule& rule, const ShortLine<Real>& line,
                      const Real* terms, ShortNorm<Real>& norm, ShortScratch<Real>& scratch,
                      ShortSums<Real>& sums) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const V centre = load<V>(line.centre), inverse = load<V>(line.inverse);
  TiedLevels<Real> levels(scratch);
  Waves<Real> above{};
  V level_sum{}, square{};
  for (int32_t i = n - 1; i >= 0; --i) {
    const int32_t at = i * kN;
    const V k = levels(i);
    const V f = load<V>(scratch.density + at) + above.density(terms);
    const V xhat = (load<V>(scratch.key + at) - centre) * inverse;
    level_sum += k;
    square += k * k;
    sums.add(load<V>(scratch.dy + at), k, f, f * xhat);
    if (i % ShortSums<Real>::kRows == 0) sums.flush();
    store(scratch.level + at, k);
    store(scratch.density + at, f);
    above.add(load<V>(scratch.weight + at));
    const Real* from = scratch.waves + 4 * at;
    above.decay(
        {load<V>(from), load<V>(from + kN), load<V>(from + 2 * kN), load<V>(from + 3 * kN)});
  }
  outer_short(level_sum, square, n, rule, norm);
}

// dx = f * (dy * by_dy + k * by_k + plain) + xhat * by_xhat + rest
template <class Real>
struct ShortGradLine {
  Real by_dy[kLanes<Real>], by_k[kLanes<Real>], plain[kLanes<Real>], by_xhat[kLanes<Real>],
      rest[kLanes<Real>];
};

// As in layer_backward.cpp, for some lanes: yhat = k * slope + level0.
template <class Real>
inline void solve_short(const ShortSums<Real>& sums, int32_t n, const ShortRule& rule,
                        const ShortAffine<Real>& affine, const ShortNorm<Real>& norm,
                        double* grad_affine, ShortGradLine<Real>& line) {
  using D = Doubles;
  for (int h = 0; h < kLanes<Real>; h += kDoubles) {
    const D inv1 = load<D>(norm.inverse + h);
    D sum[ShortSums<Real>::kSums];
    for (int s = 0; s < ShortSums<Real>::kSums; ++s) sum[s] = load<D>(sums.of[s] + h);
    const auto& [dy_sum, dy_k, f_sum, f_k, f_dy, f_xhat, f_dy_xhat, f_k_xhat] = sum;
    const double share = 1.0 / n;
    const D inv2 = all<D>(1.0) / square_root(load<D>(norm.var_out + h) + rule.eps);
    const D slope = inv2 * (1.0 / rule.levels);
    const D level0 = D{} - load<D>(norm.mean_out + h) * inv2;
    const D mean = dy_sum * share, dy_yhat = slope * dy_k * share + level0 * mean;
    const D f_yhat = (slope * f_k + level0 * f_sum) * share;
    const D f_yhat_xhat = (slope * f_k_xhat + level0 * f_xhat) * share;
    const D outer = load<D>(affine.weight_out + h) * inv2;
    const D dz = outer * ((f_dy - mean * f_sum) * share - dy_yhat * f_yhat);
    const D by_yhat = QACT_MUTANT("short_grad_yhat") ? D{} : dy_yhat * f_yhat_xhat;
    const D dz_xhat = outer * ((f_dy_xhat - mean * f_xhat) * share - by_yhat);
    const D inner = load<D>(affine.weight_in + h) * inv1, both = inner * outer;

    const D grads[4] = {dz_xhat * (double)n, dz * (double)n, dy_yhat * (double)n, dy_sum};
    for (int g = 0; g < 4; ++g) {
      double lanes[kDoubles];
      store(lanes, grads[g]);
      for (int l = 0; l < kDoubles; ++l) grad_affine[4 * (h + l) + g] = lanes[l];
    }
    put(line.by_dy + h, both);
    put(line.by_k + h, D{} - both * slope * dy_yhat);
    put(line.plain + h, D{} - both * (mean + level0 * dy_yhat));
    put(line.by_xhat + h, D{} - inner * dz_xhat);
    put(line.rest + h, QACT_MUTANT("short_grad_mean") ? D{} : D{} - inner * dz);
  }
}

// The values of dy in the order of z.
template <class Real>
inline void gather_rows(const Real* from, const int32_t* place, int32_t n, Real* rows) {
  for (int32_t j = 0; j < n * kLanes<Real>; ++j) rows[j] = from[place[j]];
}

template <class Real>
void short_backward(const Real* dy, int32_t n, const ShortRule& shared_rule,
                    const ShortAffine<Real>& affine, ShortNorm<Real>& norm,
                    ShortScratch<Real>& scratch, double* grad_affine, Real* dx) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const ShortRule rule = shared_rule;
  ShortLine<Real> line;
  int32_t below[kN];
  short_keys(n, affine, rule.eps, norm, scratch, line);
  short_order(n, line, scratch, below);
  short_levels(n, rule, below, norm, scratch);
  gather_rows(dy, scratch.place, n, scratch.dy);

  Real terms[4];
  constexpr double kInverseSqrt2Pi = 0.3989422804014327;
  for (int t = 0; t < 4; ++t) terms[t] = (Real)(kTerms[t] * kInverseSqrt2Pi / rule.bandwidth);
  density_below(n, rule, norm, terms, scratch);
  add_bounds(n, rule, norm, terms, scratch);
  ShortSums<Real> sums;
  sum_short(n, rule, line, terms, norm, scratch, sums);

  ShortGradLine<Real> grad;
  solve_short(sums, n, rule, affine, norm, grad_affine, grad);
  const V by_dy = load<V>(grad.by_dy), by_k = load<V>(grad.by_k), plain = load<V>(grad.plain);
  const V by_xhat = load<V>(grad.by_xhat), rest = load<V>(grad.rest);
  const V centre = load<V>(line.centre), inverse = load<V>(line.inverse);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t at = i * kN;
    const V xhat = (load<V>(scratch.key + at) - centre) * inverse;
    const V du = load<V>(scratch.dy + at) * by_dy + (load<V>(scratch.level + at) * by_k + plain);
    store(scratch.dy + at, load<V>(scratch.density + at) * du + (xhat * by_xhat + rest));
  }
  scatter_rows(scratch.dy, scratch.place, n, dx);
}

}  // namespace
}  // namespace qact::core::cpu
