// Levels and ranks by comparison; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include <limits>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/rank_shuffles.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// How many of the padded thresholds are <= v; more than `count` where v is +infinity.
template <class Real>
inline IntVec<Real> find_level(const Vec<Real>& v, const Real* thresholds, int32_t count) {
  int32_t size = 1;
  while (size - 1 < count - QACT_MUTANT("search_first_step")) size *= 2;
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

// Levels among any number of thresholds, by binary search in memory.
template <class Real>
class MemorySearch {
 public:
  static constexpr int kVectors = 1;
  using Place = IntVec<Real>;  // the level

  struct Table {
    const Real* entries;
    Vec<Real> at(const Place& level) const { return gather(entries, level); }
  };
  struct Levels {
    explicit Levels(int32_t) {}
    Vec<Real> at(const Place& level) const { return to_real<Real>(level); }
  };

  explicit MemorySearch(const ApplyTable<Real>& table)
      : thresholds_(table.thresholds), count_(table.count) {}

  void find(const Vec<Real> (&z)[1], Place (&level)[1]) const {
    level[0] = minimum(find_level<Real>(z[0], thresholds_, count_), all<IntVec<Real>>(count_));
  }

 private:
  const Real* thresholds_;
  int32_t count_;
};

// The same from a first guess, a value's bucket, of many of one width between the first threshold
// and the last. What maps to buckets never falls, so thresholds of lower buckets are below the
// value and those of higher ones above it; those of its own are compared with it.
template <class Real>
class GuessedSearch {
 public:
  static constexpr int kVectors = 1;
  using Place = IntVec<Real>;
  using Table = typename MemorySearch<Real>::Table;
  using Levels = typename MemorySearch<Real>::Levels;

  explicit GuessedSearch(const ApplyTable<Real>& table)
      : thresholds_(table.thresholds), count_(table.count), low_(table.thresholds[0]) {
    scale_ = kBuckets / (table.thresholds[count_ - 1] - low_);
    if (count_ > kMostLevels || !(scale_ > 0 && scale_ <= std::numeric_limits<Real>::max())) return;
    int32_t bucket = 0, first = 0, most = 0;
    for (int32_t j = 0; j < count_; ++j) {
      const int32_t own = bucket_of(thresholds_[j]);
      if (own > bucket) first = j;
      while (bucket < own) first_[++bucket] = j + QACT_MUTANT("guess_first");
      most = j - first + 1 > most ? j - first + 1 : most;
    }
    while (bucket < kBuckets - 1) first_[++bucket] = count_;
    in_a_bucket_ = most;
  }

  // Whether there are few thresholds in every bucket.
  bool pays() const { return in_a_bucket_ > 0 && in_a_bucket_ <= 3; }

  void find(const Vec<Real> (&z)[1], Place (&level)[1]) const {
    using V = Vec<Real>;
    const V place = maximum((z[0] - low_) * scale_, V{});  // 0 where z is NaN
    const Place bucket = truncate<Real>(minimum(place, all<V>((Real)(kBuckets - 1))));
    const Place counts = all<Place>(count_);  // which an infinite value would go beyond
    level[0] = gather(first_, bucket);
    for (int32_t i = 0; i < in_a_bucket_ - QACT_MUTANT("guess_steps"); ++i) {
      const Place reached = less_equal<Real>(gather(thresholds_, level[0]), z[0]);
      level[0] = minimum(level[0] - reached, counts);
    }
  }

 private:
  static constexpr int32_t kBuckets = 512, kMostLevels = 255;

  int32_t bucket_of(Real threshold) const {
    const Real place = (threshold - low_) * scale_;
    return place < (Real)(kBuckets - 1) ? (int32_t)place : kBuckets - 1;
  }

  const Real* thresholds_;
  int32_t count_, in_a_bucket_ = 0;
  Real low_, scale_;
  int32_t first_[kBuckets] = {};  // how many thresholds are in lower buckets
};

// run(search) for so many values, with what is fastest.
template <class Real, class Run>
inline void with_search(const ApplyTable<Real>& table, int64_t values, const Run& run) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Real) == 4) {
    if (table.count < kShortTable) return run(ShortSearch(table));
  }
#endif
  constexpr int64_t kWorthATable = 64;
  if (values >= kWorthATable) {
    const GuessedSearch<Real> guessed(table);
    if (guessed.pays()) return run(guessed);
  }
  run(MemorySearch<Real>(table));
}

template <class Real>
inline Vec<Real> mapped(const Vec<Real>& x, const Affine<Real>& map) {
  return (x - map.centre) * map.scale + map.shift;
}

template <class Real>
void apply(const Real* x, const ChannelRuns& runs, const Affine<Real>& shared_map,
           const ApplyTable<Real>& table, Real* y) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const Affine<Real> map = shared_map;
  with_search(table, runs.count * runs.size, [&]<class Search>(const Search& search) {
    const typename Search::Table outputs(table.outputs);
    // Vectors by their outputs.
    const auto replace = [&]<int kCount>(V(&values)[kCount]) {
      typename Search::Place place[kCount];
      for (V& v : values) v = mapped(v, map);
      search.find(values, place);
      for (int i = 0; i < kCount; ++i) {
        const V z = values[i], out = outputs.at(place[i]);
        values[i] = each<V>([&](int p) {
          const auto ordered = z.part[p] == z.part[p] || QACT_MUTANT("apply_nan");
          return ordered ? out.part[p] : z.part[p];
        });
      }
    };
    const auto replaced = [&](const V& v) -> V {
      V one[1] = {v};
      replace(one);
      return one[0];
    };
    for (int64_t r = 0; r < runs.count; ++r) {
      const Real* from = x + r * runs.x_step;
      Real* to = y + r * runs.y_step;
      if (runs.size < kN) {
        const int some = (int)runs.size;
        store_some(to, replaced(load_some<V>(from, some, (Real)0)), some);
        continue;
      }
      // The last vector overlaps the one before; it is read first, since x may be y.
      const int64_t end = runs.size - kN;
      const V last = load<V>(from + end);
      int64_t i = 0;
      for (constexpr int kAtOnce = Search::kVectors; i + kAtOnce * kN <= runs.size;
           i += kAtOnce * kN) {
        V some[kAtOnce];
        for (int k = 0; k < kAtOnce; ++k) some[k] = load<V>(from + i + k * kN);
        replace(some);
        for (int k = 0; k < kAtOnce; ++k) store(to + i + k * kN, some[k]);
      }
      for (; i < end; i += kN) store(to + i, replaced(load<V>(from + i)));
      if (i < runs.size && !QACT_MUTANT("apply_last")) store(to + end, replaced(last));
    }
  });
}

template <class Real>
void apply_grad(const Real* x, const Real* dy, int64_t n, const Affine<Real>& shared_map,
                const ApplyTable<Real>& table, ApplySums& sums, Real* dx) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  constexpr int64_t kBlock = 64 * kN;  // added up in Real
  const Affine<Real> map = shared_map;
  with_search(table, n, [&]<class Search>(const Search& search) {
    const typename Search::Table outputs(table.outputs);
    const typename Search::Levels levels(table.count);
    V dz_x{}, dz_sum{}, dy_k{}, dy_sum{};
    const auto value = [&](const V& in, const V& g) -> V {
      const V z[1] = {mapped(in, map)};
      typename Search::Place place[1];
      search.find(z, place);
      // 0 or, where z is, NaN; what is multiplied by an infinite value is left out.
      const auto or_none = [&](const V& finite) -> V {
        return each<V>([&](int p) {
          const auto none = z[0].part[p] == z[0].part[p] ? typename V::Part{} : z[0].part[p];
          return z[0].part[p] - z[0].part[p] == 0 ? finite.part[p] : none;
        });
      };
      const V dz = or_none(g * outputs.at(place[0]));
      dz_x += or_none(dz * in);
      dz_sum += dz;
      dy_k += g * levels.at(place[0]);
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
  });
}

}  // namespace
}  // namespace qact::core::cpu
