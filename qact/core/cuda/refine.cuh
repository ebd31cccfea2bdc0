// Exact levels without sorting. The values of a channel are counted by intervals of their
// order keys; an interval in which the level changes is divided further, round after round,
// until each change is pinned to one key: the threshold of its level. A whole channel is
// ranked this way, or only the bins of a histogram that are too heavy to tell levels. The ties of a
// running context are found on the way.
#pragma once

#include <cstdint>

#include "qact/core/cuda/block.cuh"
#include "qact/core/cuda/plan.cuh"
#include "qact/core/cuda/tensor.cuh"
#include "qact/core/cuda/ties.cuh"
#include "qact/core/levels.h"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// How far the tables of a channel's solve may grow. Short ones leave room for more blocks.
template <int kMostBins, int kMostLevels>
struct Limits {
  static constexpr int kBins = kMostBins + 16;
  static constexpr int kLevels = kMostLevels;
  static constexpr int kRoots = 2 * (kLevels + 1) + 8;
  static constexpr int kIntervals = kRoots + kLevels + 1 + kMostTies;
  static constexpr int kCells = kMostBins > 2048 ? 3072 : 1024;  // counted at a time
  static constexpr int kGridNodes = kMostBins / 4 + 16;    // of a density: 16 bins to a bandwidth
  static constexpr int kAhead = kMostBins > 2048 ? 8 : 1;  // loads that a thread waits for at once
  // Up to so many values, 32 bits hold n * levels^2 and n * bins.
  static constexpr int64_t kValues = kMostLevels > 127 ? 0 : 1 << 18;
};
using Long = Limits<4096, 255>;
using Short = Limits<2048, 127>;

inline constexpr int kCellsEach = 1024;  // at most, of one interval
inline constexpr uint32_t kNoKey = 0xffffffffu;

// A heavy bin, or one side of a whole channel: values that share a sign and a place
// beside the bound.
struct Root {
  uint32_t lo, hi;  // keys
  uint32_t before;  // values of the channel below it
  uint32_t count;
  int16_t bin;
  int16_t below;  // the level of the value before it; -1: its first value's is its base
  uint8_t base, last, cell;
  bool positive : 1, past_bound : 1;
};

template <class Limit>
struct RefineSpace {
  uint32_t cell[Limit::kCells], key[Limit::kCells];  // counts, and the least of the keys
  uint32_t mixed[Limit::kCells / 32];                // by cell: it holds several keys
  uint32_t lo[2][Limit::kIntervals], hi[2][Limit::kIntervals], before[2][Limit::kIntervals];
  uint16_t root[2][Limit::kIntervals];
  uint8_t shift[Limit::kIntervals];
  Root roots[Limit::kRoots];
  uint32_t threshold[Limit::kLevels + 1];
  unsigned long long level_sum, square_sum;
  unsigned long long warp_sum[kWarp], warp_square[kWarp];
  uint32_t scan[kWarp + 1];
  uint32_t kept;
  TieList<kMostTies> ties;

  __device__ bool is_mixed(uint32_t at) const { return mixed[at / 32] >> (at % 32) & 1; }
};

struct Ranking {
  const LevelRule& rule;
  int64_t negatives, positives;
  bool ties;  // are wanted, too

  // The level of the last of `upto` values.
  __device__ int level(const Root& root, uint32_t upto) const {
    const int64_t own = static_cast<int64_t>(upto) - (root.positive ? negatives : 0);
    return rule.level(root.positive, own + root.past_bound);
  }
  __device__ bool is_tie(bool positive, uint32_t count) const {
    return ties && context_is_tie(count, positive ? positives : negatives);
  }
};

// The interval of [0, count) with lo[i] <= key, or -1.
__device__ inline int interval_of(const uint32_t* lo, int count, uint32_t key) {
  return first_where(0, count, [&](int i) { return lo[i] > key; }) - 1;
}

// The order keys of a channel, or a list of those that matter.
template <class T>
struct Keys {
  Values<T> values;
  bool descending;
  const uint32_t* list;  // or null
  uint32_t n;

  Keys() = default;
  __device__ Keys(const Values<T>& all, bool falling)
      : values(all), descending(falling), list(nullptr), n(all.n) {}
  __device__ uint32_t operator[](uint32_t i) const {
    if (list) return list[i];
    const float x = values[i];
    return isnan(x) ? kNoKey : order_key(x, descending);
  }
};

// The keys of the values in heavy bins, in no order: what is counted does not depend on it.
template <class T, class Limit>
__device__ inline Keys<T> keep_heavy(const Values<T>& values, const BinMap<float>& map,
                                     const uint32_t* heavy, bool descending, uint32_t* list,
                                     RefineSpace<Limit>& space) {
  constexpr int kWords = Limit::kBins / 32 + 1;
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) space.cell[i] = __ldcg(heavy + i);
  if (threadIdx.x == 0) space.kept = 0;
  __syncthreads();
  constexpr int kAhead = Limit::kAhead;
  const uint32_t lane = threadIdx.x % kWarp;
  for (uint32_t first = threadIdx.x - lane; first < values.n; first += kAhead * blockDim.x) {
    float x[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const uint32_t i = first + a * blockDim.x + lane;
      x[a] = i < values.n ? values[i] : NAN;  // a channel with bins has none itself
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const bool inside = !isnan(x[a]);
      const int bin = inside ? bin_of(x[a], map) : 0;
      const bool kept = inside && (space.cell[bin / 32] >> (bin % 32) & 1);
      const uint32_t mask = __ballot_sync(0xffffffffu, kept);
      uint32_t at = 0;
      if (lane == 0 && mask) at = atomicAdd(&space.kept, __popc(mask));
      at = __shfl_sync(0xffffffffu, at, 0) + __popc(mask & ((1u << lane) - 1));
      if (kept) list[at] = order_key(x[a], descending);
    }
  }
  __syncthreads();
  Keys<T> out(values, descending);
  out.list = list;
  out.n = space.kept;
  return out;
}

// Counts the keys of each interval in cells of equal width, `each` to an interval. A cell in which
// all are one key, as of values that tie, need not be divided further.
template <class AllKeys, class Limit>
__device__ inline void count_cells(const AllKeys& keys, RefineSpace<Limit>& space, int now,
                                   int count, int each) {
  for (int i = threadIdx.x; i < count * each; i += blockDim.x) {
    space.cell[i] = 0;
    space.key[i] = kNoKey;
  }
  for (int i = threadIdx.x; i < Limit::kCells / 32; i += blockDim.x) space.mixed[i] = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    int shift = 0;
    while (((space.hi[now][i] - space.lo[now][i]) >> shift) >= static_cast<uint32_t>(each)) ++shift;
    space.shift[i] = static_cast<uint8_t>(shift);
  }
  __syncthreads();
  for_each_ahead<Limit::kAhead>(
      keys.n, [&](uint32_t i) { return keys[i]; },
      [&](uint32_t key) {
        const int interval = interval_of(space.lo[now], count, key);
        if (interval < 0 || key > space.hi[now][interval]) return;
        const uint32_t cell =
            interval * each + ((key - space.lo[now][interval]) >> space.shift[interval]);
        atomicAdd(&space.cell[cell], 1u);
        if (space.key[cell] == key || space.is_mixed(cell)) return;
        const uint32_t other = atomicMin(&space.key[cell], key);
        if (other != kNoKey && other != key) atomicOr(&space.mixed[cell / 32], 1u << (cell % 32));
      });
  __syncthreads();
}

// What one cell tells: nothing changes in it, or thresholds lie in it, or a tie may.
struct Cell {
  uint32_t lo, hi, before, count;
  int root, from, to;  // the levels before it and at its end
  bool tie;

  __device__ bool changes() const { return count > 0 && from != to; }
  __device__ bool matters() const { return count > 0 && (tie || from != to); }
  __device__ bool single() const { return lo == hi; }
};

template <class Limit>
__device__ inline Cell read_cell(const RefineSpace<Limit>& space, const Ranking& ranking, int now,
                                 int each, int index, int cells, uint32_t total) {
  const int interval = index / each;
  const uint32_t sub = index - interval * each;
  const uint32_t next = index + 1 < cells ? space.cell[index + 1] : total;
  Cell cell;
  cell.count = next - space.cell[index];
  cell.root = space.root[now][interval];
  cell.before = space.before[now][interval] + space.cell[index] - space.cell[interval * each];
  if (cell.count == 0) return cell;
  const Root& root = space.roots[cell.root];
  const uint64_t lo =
      space.lo[now][interval] + (static_cast<uint64_t>(sub) << space.shift[interval]);
  const uint64_t hi = lo + (uint64_t{1} << space.shift[interval]) - 1;
  cell.lo = static_cast<uint32_t>(lo);
  cell.hi = hi < space.hi[now][interval] ? static_cast<uint32_t>(hi) : space.hi[now][interval];
  if (!space.is_mixed(index)) cell.lo = cell.hi = space.key[index];
  cell.from = cell.before > root.before ? ranking.level(root, cell.before) : root.below;
  cell.to = ranking.level(root, cell.before + cell.count);
  cell.tie = ranking.is_tie(root.positive, cell.count);
  return cell;
}

// Who counts codes value by value.
struct NoCodes {
  __device__ void begin(const Root&, int, uint32_t) const {}
  __device__ void rise(const Root&, int, int, uint32_t) const {}
};

// The codes of roots that are bins: all values from the first on, of which some rise.
template <class Totals>
struct RootCodes {
  Totals& totals;

  __device__ void begin(const Root& root, int level, uint32_t count) const {
    totals.add(level + root.cell, level, count, place(root, count));
  }
  __device__ void rise(const Root& root, int from, int to, uint32_t count) const {
    totals.add(to + root.cell, to, count, place(root, count));
    totals.remove(from + root.cell, count, place(root, count));
  }

 private:
  __device__ static unsigned long long place(const Root& root, uint32_t count) {
    return static_cast<unsigned long long>(count) * static_cast<unsigned long long>(root.bin);
  }
};

// A change of level pinned to one key. `end`: the values up to the end of what is ranked.
template <class Limit, class Codes>
__device__ inline void settle(RefineSpace<Limit>& space, const Cell& cell, uint32_t end,
                              const Codes& codes) {
  const unsigned long long count = end - cell.before;
  if (cell.from < 0) {  // the first value of a heavy bin
    space.roots[cell.root].base = static_cast<uint8_t>(cell.to);
    codes.begin(space.roots[cell.root], cell.to, static_cast<uint32_t>(count));
    atomicAdd(&space.level_sum, count * cell.to);
    atomicAdd(&space.square_sum, count * cell.to * cell.to);
    return;
  }
  codes.rise(space.roots[cell.root], cell.from, cell.to, static_cast<uint32_t>(count));
  // Each value at or past the threshold of level k is worth one level, and k^2 - (k-1)^2.
  for (int k = cell.from + 1; k <= cell.to; ++k) {
    space.threshold[k] = cell.lo + QACT_MUTANT("cuda_refine_less");
    atomicAdd(&space.level_sum, count);
    atomicAdd(&space.square_sum, count * (2 * k - 1));
  }
}

// Finds the thresholds of all roots, and ties. whole_end: 0, or the number of values if the roots
// are a whole channel, whose thresholds go on from root to root.
template <class AllKeys, class Limit, class Codes = NoCodes>
__device__ inline void refine(const AllKeys& keys, const Ranking& ranking,
                              RefineSpace<Limit>& space, int roots, uint32_t whole_end,
                              const Codes& codes = {}) {
  for (int r = threadIdx.x; r < roots; r += blockDim.x) {
    const Root& root = space.roots[r];
    space.lo[0][r] = root.lo;
    space.hi[0][r] = root.hi;
    space.before[0][r] = root.before;
    space.root[0][r] = static_cast<uint16_t>(r);
  }
  __syncthreads();
  int count = roots;
  for (int now = 0; count > 0; now ^= 1) {
    const int each = min(Limit::kCells / count, kCellsEach), cells = count * each;
    count_cells(keys, space, now, count, each);
    const uint32_t total = scan_array(space.cell, cells, space.scan);
    const int own = (cells + blockDim.x - 1) / blockDim.x;
    const int begin = min(cells, static_cast<int>(threadIdx.x) * own),
              end = min(cells, begin + own);
    uint32_t open = 0;
    for (int i = begin; i < end; ++i) {
      const Cell cell = read_cell(space, ranking, now, each, i, cells, total);
      if (!cell.matters()) continue;
      if (cell.single()) {
        const Root& root = space.roots[cell.root];
        if (cell.tie && !QACT_MUTANT("cuda_refine_ties")) {
          space.ties.add({cell.count, cell.lo, root.bin, 0});
        }
        if (cell.changes()) {
          settle(space, cell, whole_end ? whole_end : root.before + root.count, codes);
        }
      } else {
        ++open;
      }
    }
    uint32_t next = 0;
    uint32_t at = scan_block(open, space.scan, next);
    for (int i = begin; i < end && open > 0; ++i) {
      const Cell cell = read_cell(space, ranking, now, each, i, cells, total);
      if (!cell.matters() || cell.single()) continue;
      space.lo[now ^ 1][at] = cell.lo;
      space.hi[now ^ 1][at] = cell.hi;
      space.before[now ^ 1][at] = cell.before;
      space.root[now ^ 1][at] = static_cast<uint16_t>(cell.root);
      ++at;
      --open;
    }
    count = static_cast<int>(next);
    __syncthreads();
  }
}

}  // namespace qact::core::cuda
