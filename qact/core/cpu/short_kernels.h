// Short contexts, of a vector of channels at a time; see TensorKernels in kernels.h. Values lie as
// [value][lane], so that nothing is added up across lanes. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

using Doubles = Vec<double>;
constexpr int kDoubles = 8;  // the lanes of Doubles: statistics take a part of a row at a time

template <class L, class Mask>
inline L select(const Mask& mask, const L& yes, const L& no) {
  return each<L>([&](int p) { return mask(p) ? yes.part[p] : no.part[p]; });
}

// The least and the largest value of each lane.
template <class Real>
inline void short_range(const Real* rows, int32_t n, Vec<Real>& low, Vec<Real>& high) {
  low = high = load<Vec<Real>>(rows);
  for (int32_t i = 1; i < n; ++i) {
    const auto row = load<Vec<Real>>(rows + i * kLanes<Real>);
    low = minimum(row, low);
    high = maximum(row, high);
  }
}

// Mean and variance; and z = (x - mean) * scale + shift, 0 in lanes without a finite norm.
template <class Real>
inline void normalise_short(const Real* x, int32_t n, const ShortAffine<Real>& affine, double eps,
                            ShortNorm<Real>& norm, Real* z) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const double share = 1.0 / n;
  for (int h = 0; h < kN; h += kDoubles) {
    const Doubles first = load_as<double>(x + h);
    Doubles mean{}, variance{};
    for (int32_t i = 1; i < n; ++i) mean += (load_as<double>(x + i * kN + h) - first) * share;
    mean += first;
    for (int32_t i = QACT_MUTANT("short_variance"); i < n; ++i) {
      const Doubles d = load_as<double>(x + i * kN + h) - mean;
      variance += d * d * share;
    }
    store(norm.mean_in + h, mean);
    store(norm.var_in + h, variance);
  }
  V low, high;
  short_range(x, n, low, high);
  Real range[kN], centre[kN], scale[kN], shift[kN], finite[kN];
  store(range, high - low);
  for (int l = 0; l < kN; ++l) {
    norm.inverse[l] = 1 / __builtin_sqrt(norm.var_in[l] + eps);
    centre[l] = (Real)norm.mean_in[l];
    scale[l] = (Real)(affine.weight_in[l] * norm.inverse[l]);
    shift[l] = (Real)affine.bias_in[l];
    // 0, unless any of them is infinite or NaN.
    const double none = ((double)range[l] * 0 + norm.mean_in[l] * 0) +
                        (norm.var_in[l] * 0 + (double)scale[l] * 0) + (double)shift[l] * 0;
    finite[l] = none == 0 ? 1 : 0;
    norm.finite[l] = none == 0;
  }
  const V at = load<V>(centre), by = load<V>(scale), plus = load<V>(shift), ok = load<V>(finite);
  for (int32_t i = 0; i < n; ++i) {
    const V row = (load<V>(x + i * kN) - at) * by + plus;
    store(z + i * kN, select([&](int p) { return ok.part[p] != 0; }, row, V{}));
  }
}

// level = min(levels, floor((levels + 1) F(z))), see LevelRule.
template <class Real>
inline void rank_short(const Real* z, int32_t n, const ShortRule& rule, ShortNorm<Real>& norm,
                       Real* level) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  using D = Doubles;
  constexpr int kN = kLanes<Real>;
  I negatives{};
  for (int32_t i = 0; i < n; ++i) {
    negatives = count_less<Real>(negatives, load<V>(z + i * kN), V{});
  }
  int32_t below[kN];
  store(below, negatives);
  for (int l = 0; l < kN; ++l) {
    norm.weight[0][l] = (1.0 - rule.positive_share) / (below[l] + 1);
    norm.weight[1][l] = rule.positive_share / (n - below[l] + 1);
  }
  alignas(64) int32_t rank[kShortContext * kN];
  rank_rows(z, n, rank);
  const D bound = all<D>(rule.bound), one = all<D>(1.0), share = all<D>(1.0 - rule.positive_share);
  for (int32_t i = 0; i < n; ++i) {
    for (int h = 0; h < kN; h += kDoubles) {
      const D at = load_as<double>(z + i * kN + h);
      const auto positive = [&](int p) { return at.part[p] >= 0; };
      const D anchor = select(positive, bound, D{} - bound);
      const D past = select([&](int p) { return at.part[p] >= anchor.part[p]; }, one, D{});
      const D lower = select(positive, load_as<double>(below + h), D{});
      const D weight = select(positive, load<D>(norm.weight[1] + h), load<D>(norm.weight[0] + h));
      const D cumulative = select(positive, share, D{}) +
                           weight * (load_as<double>(rank + i * kN + h) - lower + past);
      constexpr double kSlack = 1e-9;
      const auto k = minimum(truncate<double>(cumulative * (rule.levels + 1.0) + kSlack),
                             all<IntVec<double>>(rule.levels));
      store(level + i * kN + h, convert<Lanes<Real, kDoubles>>(k));
    }
  }
}

// The outer norm's statistics, those of level / levels.
template <class Real>
inline void outer_short(const Real* level, int32_t n, const ShortRule& rule,
                        ShortNorm<Real>& norm) {
  constexpr int kN = kLanes<Real>;
  double sums[kN], squares[kN];
  for (int h = 0; h < kN; h += kDoubles) {
    Doubles sum{}, square{};
    for (int32_t i = 0; i < n; ++i) {
      const Doubles k = load_as<double>(level + i * kN + h);
      sum += k;
      square += k * k;
    }
    store(sums + h, sum);
    store(squares + h, square);
  }
  for (int l = 0; l < kN; ++l) {
    const double mean = sums[l] / n / rule.levels;
    const double variance = squares[l] / n / rule.levels / rule.levels - mean * mean;
    const double nan = __builtin_nan("");
    norm.mean_out[l] = norm.finite[l] ? mean : nan;
    norm.var_out[l] = norm.finite[l] ? (variance > 0 ? variance : 0) : nan;
  }
}

template <class Real>
void short_forward(const Real* x, int32_t n, const ShortRule& shared_rule,
                   const ShortAffine<Real>& affine, ShortNorm<Real>& norm, Real* z, Real* y) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const ShortRule rule = shared_rule;
  normalise_short(x, n, affine, rule.eps, norm, z);
  rank_short(z, n, rule, norm, y);
  outer_short(y, n, rule, norm);
  Real scale[kN], shift[kN];
  for (int l = 0; l < kN; ++l) {
    const double outer = affine.weight_out[l] / __builtin_sqrt(norm.var_out[l] + rule.eps);
    scale[l] = (Real)(outer / rule.levels);
    shift[l] =
        (Real)(affine.bias_out[l] - (QACT_MUTANT("short_mean_out") ? 0 : outer * norm.mean_out[l]));
  }
  const V by = load<V>(scale), plus = load<V>(shift);
  for (int32_t i = 0; i < n; ++i) store(y + i * kN, load<V>(y + i * kN) * by + plus);
}

// Weights on the grid: of every value, and of the bounds where they are near. The place of a value
// among the nodes is left in room.place.
template <class Real>
inline void short_masses(const Real* z, int32_t n, int32_t nodes, const Real* first,
                         const ShortRule& rule, const ShortNorm<Real>& norm,
                         ShortRoom<Real>& room) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>, kReach = ShortRule::kReach;
  const double inverse = ShortRule::kPerBandwidth / rule.bandwidth;
  Real weights[2][kN];
  for (int l = 0; l < kN; ++l) {
    for (const int side : {0, 1}) weights[side][l] = (Real)norm.weight[side][l];
  }
  const V below = load<V>(weights[0]), above = load<V>(weights[1]), start = load<V>(first);
  std::memset(room.mass, 0, sizeof(Real) * kN * (nodes + 2 * kReach));
  for (int32_t i = 0; i < n; ++i) {
    const V row = load<V>(z + i * kN), t = row * (Real)inverse - start;
    const auto node = truncate<Real>(t);
    const V weight = select([&](int p) { return row.part[p] >= 0; }, above, below);
    const V upper = weight * (t - to_real<Real>(node));
    store(room.place + i * kN, t);
    int32_t nodes_of[kN];
    Real lower_part[kN], upper_part[kN];
    store(nodes_of, node);
    store(lower_part, weight - upper);
    store(upper_part, upper);
    for (int l = 0; l < kN; ++l) {
      Real* at = room.mass + (nodes_of[l] + kReach) * kN + l;
      at[0] += lower_part[l];
      at[kN] += upper_part[l];
    }
  }
  for (int l = 0; l < kN; ++l) {
    for (const int side : {0, 1}) {
      const double t = (side ? rule.bound : -rule.bound) * inverse - (double)first[l];
      if (!(t >= -kReach && t < nodes + kReach - 1)) continue;
      const int32_t node = (int32_t)(t + kReach);
      room.mass[node * kN + l] += (Real)(norm.weight[side][l] * (1 - (t + kReach - node)));
      room.mass[(node + 1) * kN + l] += (Real)(norm.weight[side][l] * (t + kReach - node));
    }
  }
}

// The same where no grid is long enough: the kernel of every value and of the bounds itself. Few
// are near each other then.
template <class Real>
inline void wide_density(const Real* z, int32_t n, const ShortRule& rule,
                         const ShortNorm<Real>& norm, ShortRoom<Real>& room) {
  constexpr int kN = kLanes<Real>;
  constexpr double kInverseSqrt2Pi = 0.3989422804014327, kFar = 8;
  const double inverse = 1 / rule.bandwidth;
  for (int l = 0; l < kN; ++l) {
    for (int32_t i = 0; i < n; ++i) {
      double sum = 0;
      const auto add = [&](double value, double weight) {
        const double d = ((double)z[i * kN + l] - value) * inverse;
        if (-kFar < d && d < kFar) sum += weight * __builtin_exp(-0.5 * d * d);
      };
      for (int32_t j = 0; j < n; ++j) {
        add((double)z[j * kN + l], norm.weight[z[j * kN + l] >= 0][l]);
      }
      add(-rule.bound, norm.weight[0][l]);
      add(rule.bound, norm.weight[1][l]);
      room.place[i * kN + l] = (Real)(sum * kInverseSqrt2Pi * inverse);
    }
  }
}

// The density at every value, in room.place: one convolution, and interpolation; see DensityGrid.
template <class Real>
inline void short_density(const Real* z, int32_t n, const ShortRule& rule,
                          const ShortNorm<Real>& norm, ShortRoom<Real>& room) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>, kAtOnce = 4;
  const double inverse = ShortRule::kPerBandwidth / rule.bandwidth;
  V least, most;
  short_range(z, n, least, most);
  Real low[kN], high[kN], first[kN];
  store(low, least);
  store(high, most);
  double longest = 0;
  for (int l = 0; l < kN; ++l) {
    const double start = __builtin_floor((double)low[l] * inverse) - 1;
    const double length = __builtin_ceil((double)high[l] * inverse) + 3 - start;
    first[l] = (Real)start;
    longest = length > longest ? length : longest;
  }
  if (!(longest <= kShortNodes - kAtOnce)) return wide_density(z, n, rule, norm, room);
  const int32_t nodes = ((int32_t)longest + kAtOnce - 1) / kAtOnce * kAtOnce;
  short_masses(z, n, nodes, first, rule, norm, room);
  for (int32_t node = 0; node < nodes; node += kAtOnce) {
    V sum[kAtOnce] = {};
    for (int32_t k = 0; k <= 2 * ShortRule::kReach; ++k) {
      for (int b = 0; b < kAtOnce; ++b) {
        sum[b] += load<V>(room.mass + (node + b + k) * kN) * (Real)rule.taps[k];
      }
    }
    for (int b = 0; b < kAtOnce; ++b) {
      store(room.density + (node + b) * kN, sum[b] * (Real)inverse);
    }
  }
  int32_t lanes[kN];
  for (int l = 0; l < kN; ++l) lanes[l] = l;
  const I lane = load<I>(lanes);
  for (int32_t i = 0; i < n; ++i) {
    const V t = load<V>(room.place + i * kN);
    const I node = truncate<Real>(t), at = node * (int32_t)kN + lane;
    const V from = gather(room.density, at), to = gather(room.density + kN, at);
    const V part = QACT_MUTANT("short_density_between") ? V{} : t - to_real<Real>(node);
    store(room.place + i * kN, from + (to - from) * part);
  }
}

// dx = f * (dy * by_dy + k * by_k + plain) + xhat * by_xhat + rest
template <class Real>
struct ShortLine {
  Real by_dy[kLanes<Real>], by_k[kLanes<Real>], plain[kLanes<Real>], by_xhat[kLanes<Real>],
      rest[kLanes<Real>];
};

// As in layer_backward.cpp, for some lanes: yhat = k * slope + level0.
template <class Real>
inline void solve_short(const Real* x, const Real* dy, int32_t n, const ShortRule& rule,
                        const ShortAffine<Real>& affine, const ShortNorm<Real>& norm,
                        const ShortRoom<Real>& room, double* grad_affine, ShortLine<Real>& line) {
  using D = Doubles;
  constexpr int kN = kLanes<Real>;
  for (int h = 0; h < kN; h += kDoubles) {
    const D mean_in = load<D>(norm.mean_in + h), inv1 = load<D>(norm.inverse + h);
    D dy_sum{}, dy_k{}, f_dy{}, f_dy_xhat{}, f_sum{}, f_k{}, f_xhat{}, f_k_xhat{};
    for (int32_t i = 0; i < n; ++i) {
      const int32_t at = i * kN + h;
      const D g = load_as<double>(dy + at), k = load_as<double>(room.level + at);
      const D f = load_as<double>(room.place + at);
      const D f_x = f * ((load_as<double>(x + at) - mean_in) * inv1);
      dy_sum += g;
      dy_k += g * k;
      f_sum += f;
      f_k += f * k;
      f_dy += f * g;
      f_xhat += f_x;
      f_dy_xhat += f_x * g;
      f_k_xhat += f_x * k;
    }
    const double share = 1.0 / n;
    double inverse[kDoubles];
    for (int l = 0; l < kDoubles; ++l) {
      inverse[l] = 1 / __builtin_sqrt(norm.var_out[h + l] + rule.eps);
    }
    const D inv2 = load<D>(inverse), slope = inv2 * (1.0 / rule.levels);
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
    const auto put = [&](Real* to, const D& v) {
      store(to + h, convert<Lanes<Real, kDoubles>>(v));
    };
    put(line.by_dy, both);
    put(line.by_k, D{} - both * slope * dy_yhat);
    put(line.plain, D{} - both * (mean + level0 * dy_yhat));
    put(line.by_xhat, D{} - inner * dz_xhat);
    put(line.rest, QACT_MUTANT("short_grad_mean") ? D{} : D{} - inner * dz);
  }
}

template <class Real>
void short_backward(const Real* x, const Real* dy, int32_t n, const ShortRule& shared_rule,
                    const ShortAffine<Real>& affine, ShortNorm<Real>& norm, ShortRoom<Real>& room,
                    double* grad_affine, Real* dx) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const ShortRule rule = shared_rule;
  normalise_short(x, n, affine, rule.eps, norm, room.z);
  rank_short(room.z, n, rule, norm, room.level);
  outer_short(room.level, n, rule, norm);
  short_density(room.z, n, rule, norm, room);
  ShortLine<Real> line;
  solve_short(x, dy, n, rule, affine, norm, room, grad_affine, line);
  Real centres[kN], inverses[kN];
  for (int l = 0; l < kN; ++l) {
    centres[l] = (Real)norm.mean_in[l];
    inverses[l] = (Real)norm.inverse[l];
  }
  const V by_dy = load<V>(line.by_dy), by_k = load<V>(line.by_k), plain = load<V>(line.plain);
  const V by_xhat = load<V>(line.by_xhat), rest = load<V>(line.rest);
  const V centre = load<V>(centres), inverse = load<V>(inverses);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t at = i * kN;
    const V xhat = (load<V>(x + at) - centre) * inverse;
    const V du = load<V>(dy + at) * by_dy + (load<V>(room.level + at) * by_k + plain);
    store(dx + at, load<V>(room.place + at) * du + (xhat * by_xhat + rest));
  }
}

}  // namespace
}  // namespace qact::core::cpu
