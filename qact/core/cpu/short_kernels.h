// Short contexts, of a vector of channels at a time; see TensorKernels in kernels.h. Values lie as
// [row][lane], so that nothing is added up across lanes: first as they come, then in ascending
// order of z. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/short_sort.h"
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

// Some doubles as Reals, and what they are then.
template <class Real>
inline void put(Real* to, const Doubles& v) {
  store(to, convert<Lanes<Real, kDoubles>>(v));
}
template <class Real>
inline Doubles round_to(const Doubles& v) {
  return convert<Doubles>(convert<Lanes<Real, kDoubles>>(v));
}

// z = (key - centre) * scale + shift, xhat = (key - centre) * inverse
template <class Real>
struct ShortLine {
  Real centre[kLanes<Real>], scale[kLanes<Real>], shift[kLanes<Real>], inverse[kLanes<Real>];
};

// Mean and variance by way of distances from the first value. A mean that can be told exactly is:
// then values that equal it are no less than 0.
template <class Real>
inline void short_moments(const Real* x, int32_t n, ShortNorm<Real>& norm) {
  constexpr int kN = kLanes<Real>;
  const Doubles count = all<Doubles>(n);
  for (int h = 0; h < kN; h += kDoubles) {
    const Doubles first = load_as<double>(x + h);
    Doubles sum{}, square{};
    for (int32_t i = 1; i < n - QACT_MUTANT("short_moments_last"); ++i) {
      const Doubles d = load_as<double>(x + i * kN + h) - first;
      sum += d;
      square += d * d;
    }
    const Doubles mean = sum / count;
    store(norm.mean_in + h, mean + first);
    store(norm.var_in + h, maximum(square / count - mean * mean, Doubles{}));
  }
}

// From the values in scratch.key to keys in the order of z, and their line. Lanes without a finite
// norm have 0 for all of them.
template <class Real>
inline void short_keys(int32_t n, const ShortAffine<Real>& affine, double eps,
                       ShortNorm<Real>& norm, ShortScratch<Real>& scratch, ShortLine<Real>& line) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  short_moments(scratch.key, n, norm);
  V low = load<V>(scratch.key), high = low;
  for (int32_t i = 1; i < n; ++i) {
    const auto row = load<V>(scratch.key + i * kN);
    low = minimum(row, low);
    high = maximum(row, high);
  }
  Real range[kN], sign[kN];
  store(range, high - low);
  for (int h = 0; h < kN; h += kDoubles) {
    using D = Doubles;
    const D mean = load<D>(norm.mean_in + h), variance = load<D>(norm.var_in + h);
    const D inverse = all<D>(1.0) / square_root(variance + eps);
    const D scale = round_to<Real>(load<D>(affine.weight_in + h) * inverse);
    const D shift = round_to<Real>(load<D>(affine.bias_in + h));
    // Unless any of them is infinite or NaN.
    const D none = (load_as<double>(range + h) * 0.0 + mean * 0.0) +
                   (variance * 0.0 + scale * 0.0) + shift * 0.0;
    const auto finite = [&](int p) { return none.part[p] == 0; };
    const D side = select([&](int p) { return scale.part[p] < 0; }, all<D>(-1.0), all<D>(1.0));
    store(norm.inverse + h, inverse);
    store(norm.none + h, none);
    put<Real>(line.centre + h, select(finite, mean * side, D{}));
    put<Real>(line.scale + h, select(finite, scale * side, D{}));
    put<Real>(line.shift + h, select(finite, shift, D{}));
    put<Real>(line.inverse + h, inverse * side);
    put<Real>(sign + h, select(finite, side, D{}));
  }
  const V by = load<V>(sign);
  for (int32_t i = 0; i < n; ++i) {
    const V row = load<V>(scratch.key + i * kN);
    const V key = select([&](int p) { return by.part[p] != 0; }, row * by, V{});
    store(scratch.key + i * kN, key);
  }
}

// Sorts the keys, each with its place, and leaves z and how many of a lane's are below 0.
template <class Real>
inline void short_order(int32_t n, const ShortLine<Real>& line, ShortScratch<Real>& scratch,
                        int32_t* below) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  int32_t lanes[kN], rows = 8;
  for (int l = 0; l < kN; ++l) lanes[l] = l;
  const I lane = load<I>(lanes);
  for (int32_t i = 0; i < n; ++i) store(scratch.place + i * kN, lane + i * kN);
  while (rows < n) rows *= 2;
  for (int32_t i = n; i < rows; ++i) {  // these stay last
    store(scratch.key + i * kN, all<V>((Real)__builtin_inf()));
    store(scratch.place + i * kN, lane);
  }
  RowSort<Real>(scratch.key, scratch.place, rows).run();
  const V centre = load<V>(line.centre), scale = load<V>(line.scale), shift = load<V>(line.shift);
  I negatives{};
  for (int32_t i = 0; i < n; ++i) {
    const V z = (load<V>(scratch.key + i * kN) - centre) * scale + shift;
    negatives = count_less<Real>(negatives, z, V{});
    store(scratch.z + i * kN, z);
  }
  store(below, negatives);
}

// level = min(levels, floor((levels + 1) F(z))), see LevelRule, as if no two values were equal:
// a row's number is its rank.
template <class Real>
inline void short_levels(int32_t n, const ShortRule& rule, const int32_t* below,
                         ShortNorm<Real>& norm, ShortScratch<Real>& scratch) {
  using D = Doubles;
  constexpr int kN = kLanes<Real>;
  constexpr double kSlack = 1e-9;
  const D bound = all<D>(rule.bound), one = all<D>(1.0);
  const double thresholds = rule.levels + 1.0;
  const auto most = all<IntVec<double>>(rule.levels);
  for (int h = 0; h < kN; h += kDoubles) {
    const D negatives = load_as<double>(below + h);
    const D weights[2] = {all<D>(1.0 - rule.positive_share) / (negatives + one),
                          all<D>(rule.positive_share) / (all<D>(n + 1.0) - negatives)};
    for (const int side : {0, 1}) store(norm.weight[side] + h, weights[side]);
    const D slopes[2] = {weights[0] * thresholds, weights[1] * thresholds};
    const D firsts[2] = {all<D>(kSlack), all<D>(thresholds * (1.0 - rule.positive_share) + kSlack) -
                                             slopes[1] * negatives};
    for (int32_t i = 0; i < n; ++i) {
      const D at = load_as<double>(scratch.z + i * kN + h);
      const auto positive = [&](int p) { return at.part[p] >= 0; };
      const D reached = select(positive, bound, D{} - bound);
      const D rank = select([&](int p) { return at.part[p] >= reached.part[p]; }, all<D>(i + 2.0),
                            all<D>(i + 1.0));
      const D level =
          select(positive, slopes[1], slopes[0]) * rank + select(positive, firsts[1], firsts[0]);
      const auto k = minimum(truncate<double>(level), most);
      store(scratch.level + i * kN + h, convert<Lanes<Real, kDoubles>>(k));
    }
  }
}

// Equal values have the level of the last one: that of row i, in which rows are taken from the last
// one on.
template <class Real>
class TiedLevels {
 public:
  explicit TiedLevels(const ShortScratch<Real>& scratch) : scratch_(scratch) {}

  Vec<Real> operator()(int32_t i) {
    const auto z = load<Vec<Real>>(scratch_.z + i * kLanes<Real>);
    const auto own = load<Vec<Real>>(scratch_.level + i * kLanes<Real>);
    const auto tied = [&](int p) { return z.part[p] == above_.part[p]; };
    level_ = QACT_MUTANT("short_ties") ? own : select(tied, level_, own);
    above_ = z;
    return level_;
  }

 private:
  const ShortScratch<Real>& scratch_;
  Vec<Real> above_ = all<Vec<Real>>((Real)__builtin_nan("")), level_{};  // equal to none
};

// The outer norm's statistics, those of level / levels, from sums of whole numbers: 256 values of
// levels up to 255 are exact in float.
template <class Real>
inline void outer_short(const Vec<Real>& sum, const Vec<Real>& square, int32_t n,
                        const ShortRule& rule, ShortNorm<Real>& norm) {
  constexpr int kN = kLanes<Real>;
  Real sums[kN], squares[kN];
  store(sums, sum);
  store(squares, square);
  const double share = 1.0 / n / rule.levels;
  for (int h = 0; h < kN; h += kDoubles) {
    const Doubles none = load<Doubles>(norm.none + h);
    const Doubles mean = load_as<double>(sums + h) * share;
    const Doubles variance = load_as<double>(squares + h) * (share / rule.levels) - mean * mean;
    store(norm.mean_out + h, mean + none);
    store(norm.var_out + h, maximum(variance, Doubles{}) + none);
  }
}

// Rows to the places of their values.
template <class Real>
inline void scatter_rows(const Real* rows, const int32_t* place, int32_t n, Real* to) {
  for (int32_t j = QACT_MUTANT("short_scatter_first"); j < n * kLanes<Real>; ++j) {
    to[place[j]] = rows[j];
  }
}

template <class Real>
void short_forward(int32_t n, const ShortRule& shared_rule, const ShortAffine<Real>& affine,
                   ShortNorm<Real>& norm, ShortScratch<Real>& scratch, Real* y) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const ShortRule rule = shared_rule;
  ShortLine<Real> line;
  int32_t below[kN];
  short_keys(n, affine, rule.eps, norm, scratch, line);
  short_order(n, line, scratch, below);
  short_levels(n, rule, below, norm, scratch);
  TiedLevels<Real> levels(scratch);
  V sum{}, square{};
  for (int32_t i = n - 1; i >= 0; --i) {
    const V level = levels(i);
    sum += level;
    square += level * level;
    store(scratch.level + i * kN, level);
  }
  outer_short(sum, square, n, rule, norm);
  if (!y) return;
  Real scale[kN], shift[kN];
  for (int h = 0; h < kN; h += kDoubles) {
    using D = Doubles;
    const D outer =
        load<D>(affine.weight_out + h) / square_root(load<D>(norm.var_out + h) + rule.eps);
    const D mean = QACT_MUTANT("short_mean_out") ? D{} : load<D>(norm.mean_out + h);
    put<Real>(scale + h, outer * (1.0 / rule.levels));
    put<Real>(shift + h, load<D>(affine.bias_out + h) - outer * mean);
  }
  const V by = load<V>(scale), plus = load<V>(shift);
  for (int32_t i = 0; i < n; ++i) {
    store(scratch.level + i * kN, load<V>(scratch.level + i * kN) * by + plus);
  }
  scatter_rows(scratch.level, scratch.place, n, y);
}

}  // namespace
}  // namespace qact::core::cpu
