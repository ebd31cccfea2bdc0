// What a solve makes of a channel: the way from a value to its level and its code.
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
  alignas(16) uint8_t code[Limit::kBins];  // by bin; where a root tells levels, the cell alone
  alignas(16) uint8_t level[kCodes];       // by code
  BinMap<float> map;
  CodeGrid grid;
  OutNorm norm;
  How how;
  bool descending;
  bool by_value;  // cells are
  int32_t roots;
  uint32_t heavy[Limit::kBins / 32 + 1];  // by bin: a root tells its levels
  uint32_t threshold[Limit::kLevels + 1];
  int16_t root_bin[Limit::kRoots];
  uint8_t root_base[Limit::kRoots], root_last[Limit::kRoots];

  // Whether code[] tells all.
  __device__ bool simple() const { return how == kBinned && roots == 0 && !by_value; }
};

struct Found {
  int level, code;
};

// The number of thresholds in (base, last] at or below the key, plus base.
__device__ inline int level_among(const uint32_t* threshold, int base, int last, uint32_t key) {
  return first_where(base + 1, last + 1, [&](int k) { return threshold[k] > key; }) - 1;
}

// Of a value, by its channel's map; `code` is map.code, perhaps in shared memory.
template <class Map>
__device__ inline Found find_code(float x, const Map& map, const uint8_t* code,
                                  const uint32_t* threshold, int levels) {
  if (map.how == kNotFinite) return {0, 0};
  if (map.how == kExact) {
    const int level = level_among(threshold, 0, levels, order_key(x, map.descending));
    return {level, level + map.grid.cell(map.grid.t(x))};
  }
  if (map.by_value) return {code[0], code[0] + map.grid.cell(map.grid.t(x))};
  const int bin = bin_of(x, map.map);
  if (map.roots == 0 || !(map.heavy[bin / 32] >> (bin % 32) & 1)) {
    return {map.level[code[bin]], code[bin]};
  }
  const int last = map.roots - QACT_MUTANT("cuda_level_last_root");
  const int root = first_where(1, last, [&](int r) { return map.root_bin[r] > bin; }) - 1;
  const int level = level_among(map.threshold, map.root_base[root], map.root_last[root],
                                order_key(x, map.descending));
  return {level, level + code[bin]};
}

}  // namespace qact::core::cuda
