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

// Levels among few thresholds, and their outputs, in tables that fit two registers each: first the
// number k of every fourth threshold that is reached, then the three between, of which only a first
// part can be reached. Thresholds 4 k + j, j = 0..3, and outputs of levels 4 k + j are a table
// each.
class ShortApply {
 public:
  explicit ShortApply(const ApplyTable<float>& table) {
    int32_t thresholds[kShortTable], outputs[kShortTable];  // the bits of floats
    std::memcpy(thresholds, table.thresholds, sizeof(thresholds));
    std::memcpy(outputs, table.outputs, sizeof(outputs));
    for (int k = 0; k < kQuarter; ++k) {
      for (int j = 0; j < 4; ++j) {
        thresholds_[j][k] = thresholds[4 * k + j];
        outputs_[j][k] = outputs[4 * k + j];
      }
      if (QACT_MUTANT("apply_coarse")) thresholds_[3][k] = thresholds[4 * k + 2];
    }
  }

  Vec<float> operator()(const Vec<float>& z) const {
    const IntVec<float> k = coarse(z);
    Vec<float> out = entry(outputs_[0], k);
    for (int j = 0; j < 3; ++j) {
      const Vec<float> threshold = entry(thresholds_[j], k), more = entry(outputs_[j + 1], k);
      out = each<Vec<float>>(
          [&](int p) { return threshold.part[p] <= z.part[p] ? more.part[p] : out.part[p]; });
    }
    return out;
  }

  IntVec<float> level(const Vec<float>& z) const {
    const IntVec<float> k = coarse(z);
    IntVec<float> out = k * 4;
    for (int j = 0; j < 3; ++j) {
      out = out - less_equal<float>(entry(thresholds_[j], k), z);
    }
    return out;
  }

 private:
  static constexpr int kQuarter = kShortTable / 4;
  static_assert(kQuarter == 32);  // what lookup<1> takes

  static Vec<float> entry(const int32_t* table, const IntVec<float>& k) {
    const IntVec<float> bits = lookup<1>(table, k);
    return each<Vec<float>>([&](int p) { return (Vec<float>::Part)bits.part[p]; });
  }
  IntVec<float> coarse(const Vec<float>& z) const {
    IntVec<float> k{};
    for (int32_t step = kQuarter / 2; step > 0; step /= 2) {
      k += less_equal<float>(entry(thresholds_[3], k + (step - 1)), z) & step;
    }
    return k;
  }

  alignas(64) int32_t thresholds_[4][kQuarter];
  alignas(64) int32_t outputs_[4][kQuarter];
};

template <class Real>
void apply(const Real* x, const ChannelRuns& runs, const Affine<Real>& map,
           const ApplyTable<Real>& table, Real* y) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const auto each_vector = [&](const auto& output) {
    const auto value = [&](const V& in) -> V {
      const V z = (in - map.centre) * map.scale + map.shift;
      const V out = output(z);
      return each<V>([&](int p) {
        const auto ordered = z.part[p] == z.part[p] || QACT_MUTANT("apply_nan");
        return ordered ? out.part[p] : z.part[p];
      });
    };
    for (int64_t r = 0; r < runs.count; ++r) {
      const Real* from = x + r * runs.x_step;
      Real* to = y + r * runs.y_step;
      if (runs.size < kN) {
        const int some = (int)runs.size;
        store_some(to, value(load_some<V>(from, some, (Real)0)), some);
        continue;
      }
      // The last vector overlaps the one before; it is read first, since x may be y.
      const int64_t end = runs.size - kN;
      const V last = load<V>(from + end);
      for (int64_t i = 0; i < end; i += kN) store(to + i, value(load<V>(from + i)));
      if (!QACT_MUTANT("apply_last")) store(to + end, value(last));
    }
  };
  if constexpr (sizeof(Real) == 4) {
    if (table.count < kShortTable) return each_vector(ShortApply(table));
  }
  const IntVec<Real> counts = all<IntVec<Real>>(table.count);
  each_vector([&](const V& z) {
    return gather(table.outputs,
                  minimum(find_level<Real>(z, table.thresholds, table.count), counts));
  });
}

template <class Real>
void apply_grad(const Real* x, const Real* dy, int64_t n, const Affine<Real>& shared_map,
                const ApplyTable<Real>& table, ApplySums& sums, Real* dx) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  constexpr int64_t kBlock = 64 * kN;  // added up in Real
  const Affine<Real> map = shared_map;
  const auto run = [&](const auto& level_of, const auto& output) {
    V dz_x{}, dz_sum{}, dy_k{}, dy_sum{};
    const auto value = [&](const V& in, const V& g) -> V {
      const V z = (in - map.centre) * map.scale + map.shift;
      const I k = level_of(z);
      // 0 or, where z is, NaN; what is multiplied by an infinite value is left out.
      const auto or_none = [&](const V& finite) -> V {
        return each<V>([&](int p) {
          const auto none = z.part[p] == z.part[p] ? typename V::Part{} : z.part[p];
          return z.part[p] - z.part[p] == 0 ? finite.part[p] : none;
        });
      };
      const V dz = or_none(g * output(k));
      dz_x += or_none(dz * in);
      dz_sum += dz;
      dy_k += g * to_real<Real>(k);
      dy_sum += g;
      return dz * map.scale;
    };
    const auto flush = [](V& from, double& to) {
      Real lanes[kLanes<Real>];
      store(lanes, from);
      for (const Real lane : lanes) to += (double)lane;
      from = {};
    };
    for (int64_t i = 0; i < n; i += kN) {
      if (i + kN <= n) {
        store(dx + i, value(load<V>(x + i), load<V>(dy + i)));
      } else if (!QACT_MUTANT("apply_grad_tail")) {
        const int some = (int)(n - i);
        const V rest =
            value(load_some<V>(x + i, some, (Real)0), load_some<V>(dy + i, some, (Real)0));
        store_some(dx + i, rest, some);
      }
      if (i + kN < n && (i + kN) % kBlock != 0) continue;
      flush(dz_x, sums.dz_x);
      flush(dz_sum, sums.dz);
      flush(dy_k, sums.dy_k);
      flush(dy_sum, sums.dy);
    }
  };
  if constexpr (sizeof(Real) == 4) {
    if (table.count < kShortTable) {
      int32_t outputs[kShortTable];  // the bits of floats
      std::memcpy(outputs, table.outputs, sizeof(outputs));
      const ShortApply search(table);
      return run([&](const V& z) { return search.level(z); },
                 [&](const I& k) {
                   const I bits = lookup<kShortTable / 32>(outputs, k);
                   return each<V>([&](int p) { return (typename V::Part)bits.part[p]; });
                 });
    }
  }
  const I counts = all<I>(table.count);
  run(
      [&](const V& z) {
        return minimum(find_level<Real>(z, table.thresholds, table.count), counts);
      },
      [&](const I& k) { return gather(table.outputs, k); });
}

}  // namespace
}  // namespace qact::core::cpu
