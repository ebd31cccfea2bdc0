// The few values of a short channel that lie in heavy bins, told apart by counting.
#pragma once

#include "qact/core/cuda/quick.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

inline constexpr int kFewHeavy = 512;

// In no order: what is counted does not depend on it.
struct HeavyList {
  uint32_t count;
  uint32_t key[kFewHeavy];
  uint16_t bin[kFewHeavy];
  uint8_t code[kFewHeavy];
  TieList<kFewHeavy / 8> ties;  // context_is_tie: of eight values or more

  __device__ void clear() { count = ties.count = 0; }
  __device__ void add(uint32_t of, int at) {
    const uint32_t place = atomicAdd(&count, 1u);
    key[place] = of;
    bin[place] = static_cast<uint16_t>(at);
  }
  __device__ int code_of(uint32_t of) const {
    for (uint32_t j = 0; j < count; ++j) {
      if (key[j] == of) return code[j];
    }
    return 0;
  }
};

// The levels and codes of a list's values, added to the totals, and their ties, if those are
// wanted.
template <class Team, class Space>
__device__ inline void rank_heavy(const Team& team, const ChannelPlan& plan,
                                  const Quantile& quantile, bool ties, Space& space,
                                  HeavyList& list) {
  const int64_t negatives = space.totals.negatives, positives = plan.values - negatives;
  const LevelRule rule(quantile, negatives, positives);
  for (uint32_t e = team.thread; e < list.count; e += Team::kThreads) {
    const uint32_t key = list.key[e];
    const int bin = list.bin[e];
    const bool positive = bin >= plan.bins.split;
    int64_t rank = space.before[bin] - (positive ? negatives : 0);
    rank += plan.bins.centre(bin) >= (positive ? quantile.bound : -quantile.bound);
    uint32_t equals = 0, earlier = 0;
    for (uint32_t j = 0; j < list.count; ++j) {
      const bool below = QACT_MUTANT("cuda_heavy_rank") ? list.key[j] < key : list.key[j] <= key;
      rank += list.bin[j] == bin && below;
      equals += list.key[j] == key;
      earlier += list.key[j] == key && j < e;
    }
    const bool tie =
        context_is_tie(equals - QACT_MUTANT("cuda_heavy_tie"), positive ? positives : negatives);
    if (ties && earlier == 0 && tie) {
      list.ties.add({equals, key, static_cast<int16_t>(bin),
                     tie_bin(plan.bins, key_value(key, plan.norm.scale < 0))});
    }
    const uint32_t level = static_cast<uint32_t>(rule.level(positive, rank));
    const uint32_t code = level + space.cells.of(bin);
    list.code[e] = static_cast<uint8_t>(code);
    space.codes.add(code, level, 1, bin);
    atomicAdd(&space.totals.sum, level);
    atomicAdd(&space.totals.square, level * level);
  }
}

}  // namespace qact::core::cuda
