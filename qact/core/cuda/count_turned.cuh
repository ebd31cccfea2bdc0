// Counting over columns into turned tables: a word holds the counts of two neighbouring bins of
// one channel, and the same words of a block's channels lie side by side. Lanes that count in
// different channels then meet different banks of shared memory, whatever the values are.
#pragma once

#include <bit>

#include "qact/core/cuda/forward_columns.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Either value of a pack.
template <class T>
__device__ inline float pick(const Pack<T, 2>& pack, bool second) {
  return to_float(second ? pack.v[1] : pack.v[0]);
}
// A bfloat16 is the upper half of a float, so that picking its bytes converts it, too.
__device__ inline float pick(const Pack<__nv_bfloat16, 2>& pack, bool second) {
  return __uint_as_float(__byte_perm(std::bit_cast<uint32_t>(pack), 0, second ? 0x3244 : 0x1044));
}

// A channel's bins in turned tables, as a thread keeps them. Those without bins have all values,
// NaN among them, in the first word, whose counts nobody reads.
template <int kGroup>
struct TurnedBins {
  static constexpr uint32_t kBytes = 2 * kGroup;  // of one bin's counts in all channels
  // From here up to its double, neighbouring floats are 1 / kBytes apart.
  static constexpr float kFine = static_cast<float>((1 << 23) / kBytes);

  float origin = 0, scale = 0, offset = kFine;
  uint32_t mask = 0;  // of the bits that tell a word
  uint32_t at;        // the channel's place in bytes

  __device__ explicit TurnedBins(uint32_t channel) : at(channel * 4) {}

  __device__ void use(const BinMap<float>& map) {
    origin = map.origin;
    scale = map.scale;
    offset = kFine + static_cast<float>(map.offset);
    mask = ((1 << 23) - 1) & ~(2 * kBytes - 1);
  }

  // The bin of bin_of(): rounding down to multiples of 1 / kBytes keeps the floor of t + offset,
  // and leaves bin * kBytes in the lower bits, with a fraction below.
  __device__ void count(char* tables, float x) const {
    const float t = __fmul_rn(__fsub_rn(x, origin), scale);
    const uint32_t bits = __float_as_uint(__fadd_rd(t, offset));
    atomicAdd(reinterpret_cast<uint32_t*>(tables + ((bits & mask) | at)),
              bits & kBytes && !QACT_MUTANT("cuda_turned_upper") ? 1u << 16 : 1u);
  }
};

// Stores the tables of a block's channels one after the other. Two neighbouring lanes store a
// whole sector of memory, 32 bytes, at once. They read their words in different orders, since
// the first of each lie in the same bank.
template <int kGroup, int kBlock>
__device__ inline void turn_back(const uint32_t* words, const Extent& extent,
                                 const PartCounts& counts) {
  constexpr uint32_t kEach = kBlock / kGroup;  // threads of a channel
  const uint32_t lane = threadIdx.x % (2 * kGroup), mine = lane / 2;
  const uint32_t channel = blockIdx.x * kGroup + mine;
  if (channel >= extent.channels) return;
  const bool odd = lane % 2;
  uint4* const to = reinterpret_cast<uint4*>(counts.of(channel, blockIdx.y));
  const uint32_t one = odd ? kGroup : 0, other = kGroup - one;
  for (uint32_t i = threadIdx.x / (2 * kGroup) * 2 + odd; i < counts.per_part / 4; i += kEach) {
    const uint32_t* const from = words + i * 4 * kGroup + mine;
    const uint32_t a = from[one], b = from[other];
    const uint32_t c = from[2 * kGroup + one], d = from[2 * kGroup + other];
    to[i] = odd ? uint4{b, a, d, c} : uint4{a, b, c, d};
  }
}

template <class T, int kGroup, int kBlock>
__global__ void __launch_bounds__(kBlock)
    count_columns_turned(const T* x, Layout layout, Extent extent, Summaries summaries,
                         NormIn norm_in, Quantile quantile, PartCounts counts) {
  static_assert(kBlock / kWarp >= kGroup && 2 * kGroup == kWarp);
  constexpr int kSize = kColumnPack;
  extern __shared__ __align__(16) uint32_t words[];
  __shared__ Room<ChannelPlan, kGroup> plans_room;
  ChannelPlan* const plans = plans_room.array();
  clear_words(words, counts.per_part * kGroup);
  let_next_start();
  plan_columns<kGroup>(x, extent, summaries, norm_in, quantile, plans);
  const Column<kGroup, kSize> column(blockIdx.x);
  // At every other place, threads take their second channel first: otherwise the lanes of a warp
  // would crowd in every other bank.
  const bool odd = column.first % 2;
  const uint32_t first = column.channel - blockIdx.x * kGroup;
  TurnedBins<kGroup> bins[kSize] = {TurnedBins<kGroup>(first + odd),
                                    TurnedBins<kGroup>(first + !odd)};
  bool some = false;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const ChannelPlan& plan = plans[bins[i].at / 4];
    if (column.channel < extent.channels && plan.how == kBinned) {
      bins[i].use(plan.bins.map);
      some = true;
    }
  }
  if (!__syncthreads_or(some)) return;
  // A pointer that walks along takes fewer instructions than the address of each place.
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * extent.per_part + column.first;
  const int64_t stride = column.step() * layout.row_stride;
  const T* at = x + begin * layout.row_stride + column.channel;
  column.template for_each_batch<8>(
      extent, blockIdx.y,
      [&](uint32_t) {
        const auto pack = load<kSize>(at);
        at += stride;
        return pack;
      },
      [&]<int kCount>(const Pack<T, kSize>(&packs)[kCount], uint32_t) {
        char* const tables = reinterpret_cast<char*>(words);
#pragma unroll
        for (int a = 0; a < kCount; ++a) {
          bins[0].count(tables, pick(packs[a], odd));
          bins[1].count(tables, pick(packs[a], !odd));
        }
      });
  __syncthreads();
  turn_back<kGroup, kBlock>(words, extent, counts);
}

}  // namespace qact::core::cuda
