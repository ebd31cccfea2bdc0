// What a solve makes of a channel: the way from a value to its level.
#pragma once

#include <cstdint>

#include "qact/core/cuda/density.cuh"
#include "qact/core/cuda/refine.cuh"
#include "qact/core/cuda/solve_call.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Everything that the last pass of the forward direction needs of a channel.
template <class Limit>
struct LevelMap {
  alignas(16) uint8_t level[Limit::kBins];  // by bin
  BinMap<float> map;
  OutNorm norm;
  How how;
  bool descending;
  int32_t roots;
  uint32_t heavy[Limit::kBins / 32 + 1];  // by bin: a root tells its levels
  uint32_t threshold[Limit::kLevels + 1];
  int16_t root_bin[Limit::kRoots];
  uint8_t root_base[Limit::kRoots], root_last[Limit::kRoots];
};

// The number of thresholds in (base, last] at or below the key, plus base.
__device__ inline int level_among(const uint32_t* threshold, int base, int last, uint32_t key) {
  return first_where(base + 1, last + 1, [&](int k) { return threshold[k] > key; }) - 1;
}

// The level of a value by its channel's map; `level` is map.level, perhaps in shared memory.
template <class Map>
__device__ inline int level_of(float x, const Map& map, const uint8_t* level,
                               const uint32_t* threshold, int levels) {
  if (map.how == kExact) {
    return level_among(threshold, 0, levels, order_key(x, map.descending));
  }
  const int bin = bin_of(x, map.map);
  if (map.roots == 0 || !(map.heavy[bin / 32] >> (bin % 32) & 1)) return level[bin];
  const int last = map.roots - QACT_MUTANT("cuda_level_last_root");
  const int root = first_where(1, last, [&](int r) { return map.root_bin[r] > bin; }) - 1;
  return level_among(map.threshold, map.root_base[root], map.root_last[root],
                     order_key(x, map.descending));
}

}  // namespace qact::core::cuda
