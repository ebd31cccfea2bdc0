// Levels and ranks by comparison; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include <cstring>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// How many of the padded thresholds are <= v; more than `count` where v is +infinity.
template <class Real>
inline IntVec<Real> find_level(const Vec<Real>& v, const Real* thresholds, int32_t count) {
  int32_t size = 1;
  while (size - 1 < count) size *= 2;
  IntVec<Real> low{};
  for (int32_t step = size / 2; step > 0; step /= 2) {
    low += less_equal<Real>(gather(thresholds, low + (step - 1)), v) & step;
  }
  return low;
}

template <class Real>
void search(const Real* z, int64_t n, const Real* thresholds, int32_t count, int32_t* level) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  const I counts = all<I>(count);
  const auto find = [&](const V& v) -> I {
    return minimum(find_level<Real>(v, thresholds, count), counts);
  };
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store(level + i, find(load<V>(z + i)));
  if (i < n) {
    store_some(level + i, find(load_some<V>(z + i, (int)(n - i), (Real)0)), (int)(n - i));
  }
}

// A search among few thresholds in which no step leaves the registers, where they hold the tables:
// first among every fourth threshold, then among the four that are left.
class ShortSearch {
 public:
  explicit ShortSearch(const float* thresholds) {
    std::memcpy(all_, thresholds, sizeof(all_));
    for (int k = 0; k < kCoarse; ++k) coarse_[k] = all_[4 * k + 3 - QACT_MUTANT("apply_coarse")];
  }

  IntVec<float> operator()(const Vec<float>& v) const {
    const auto reached = [&](const IntVec<float>& threshold) {
      Vec<float> t;
      std::memcpy(&t, &threshold, sizeof(t));
      return less_equal<float>(t, v);
    };
    IntVec<float> low{};
    for (int32_t step = kCoarse / 2; step > 0; step /= 2) {
      low += reached(lookup<1>(coarse_, low + (step - 1))) & step;
    }
    low = low + low;
    low = low + low;
    for (int32_t step = 2; step > 0; step /= 2) {
      low += reached(lookup<kShortTable / 32>(all_, low + (step - 1))) & step;
    }
    return low;
  }

 private:
  static constexpr int kCoarse = kShortTable / 4;
  alignas(64) int32_t all_[kShortTable];  // the bits of floats
  alignas(64) int32_t coarse_[kCoarse];
};

template <class Real>
void apply(const Real* x, int64_t n, const Affine<Real>& map, const ApplyTable<Real>& table,
           Real* y) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  const I counts = all<I>(table.count);
  const auto each_vector = [&](const auto& find, const auto& output) {
    const auto value = [&](const V& in) -> V {
      const V z = (in - map.centre) * map.scale + map.shift;
      const V out = output(minimum(find(z), counts));
      return each<V>([&](int p) {
        const auto ordered = z.part[p] == z.part[p] || QACT_MUTANT("apply_nan");
        return ordered ? out.part[p] : z.part[p];
      });
    };
    int64_t i = 0;
    for (; i + kN <= n; i += kN) store(y + i, value(load<V>(x + i)));
    if (i < n) {
      const int some = (int)(n - i);
      store_some(y + i, value(load_some<V>(x + i, some, (Real)0)), some);
    }
  };
  if constexpr (sizeof(Real) == 4) {
    if (table.count < kShortTable) {
      alignas(64) int32_t outputs[kShortTable];
      std::memcpy(outputs, table.outputs, sizeof(outputs));
      return each_vector(ShortSearch(table.thresholds), [&](const I& level) {
        const I bits = lookup<kShortTable / 32>(outputs, level);
        V out;
        std::memcpy(&out, &bits, sizeof(out));
        return out;
      });
    }
  }
  each_vector([&](const V& z) { return find_level<Real>(z, table.thresholds, table.count); },
              [&](const I& level) { return gather(table.outputs, level); });
}

template <class Real>
void ranks(const Real* z, int32_t n, int32_t* rank) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  for (int32_t i = 0; i < n; i += kN) {
    const int some = n - i < kN ? n - i : kN;
    const V own = load_some<V>(z + i, some, (Real)0);
    I count{};
    for (int32_t j = QACT_MUTANT("ranks_first"); j < n; ++j)
      count = count - less_equal<Real>(all<V>(z[j]), own);
    store_some(rank + i, count, some);
  }
}

}  // namespace
}  // namespace qact::core::cpu
