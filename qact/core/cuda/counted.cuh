// Channels of very few values, one block each, ranked by counting.
#pragma once

#include "qact/core/cuda/small_call.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Up to kCounted values: thread i ranks value i.
inline constexpr int kCounted = 256;

struct CountedSpace {
  uint32_t key[kCounted];
  float z[kCounted], weight[kCounted + 2];
  uint32_t context[kContextBins];
  ChannelPlan plan;
  uint32_t zero, bound[2];
  CodeGrid grid;
  CodeTotals<uint32_t> codes;
  CodeTableSpace table;
  Partial partial[kCounted / kWarp];
};

struct LevelSums {
  unsigned long long negatives = 0, level = 0, square = 0;

  __device__ static LevelSums merge(const LevelSums& a, const LevelSums& b) {
    LevelSums out;
    out.negatives = a.negatives + b.negatives;
    out.level = a.level + b.level;
    out.square = a.square + b.square;
    return out;
  }
};

// sum_j w_j phi((at - z_j) / h) / h over the values and both bounds, +-`bound`.
__device__ inline float direct_density(const CountedSpace& space, uint32_t n, float at, double h,
                                       float bound) {
  const float inverse = static_cast<float>(1 / h);
  float sum = 0;
  const auto add = [&](float z, float weight) {
    const float u = (at - z) * inverse;
    sum += weight * __expf(-0.5f * u * u);
  };
  for (uint32_t j = 0; j < n; ++j) {
    if (isfinite(space.z[j])) add(space.z[j], space.weight[j]);
  }
  add(-bound, space.weight[kCounted]);
  add(bound, space.weight[kCounted + 1]);
  return sum * 0.3989422804f * inverse;
}

template <class T>
__global__ void __launch_bounds__(kCounted) forward_counted(SmallCall<T> call, SolveCall solve) {
  __shared__ Room<CountedSpace> space_room;
  CountedSpace& space = space_room.value();
  __shared__ Room<LevelSums, kCounted / kWarp> sums_shared_room;
  LevelSums* const sums_shared = sums_shared_room.array();
  const uint32_t channel = blockIdx.x, i = threadIdx.x;
  const Quantile& quantile = solve.quantile;
  const float bound = static_cast<float>(quantile.bound);
  const Values<T> values = call.x.of(channel);
  const uint32_t n = values.n;
  const bool inside = i < n;
  const float x = inside ? values[i] : NAN;
  const Partial all = summarise_block(values, space.partial);
  const Affine in = solve.norm_in.of(channel);
  space.codes.clear(i, kCounted);
  if (i == 0) {
    space.plan = make_plan(all, shift_of(values[0]), n, solve.norm_in, in, quantile);
    space.grid = CodeGrid(space.plan, solve.norm_in, in.weight, quantile.levels);
    const Norm& norm = space.plan.norm;
    if (norm.scale != 0) {
      space.zero = key_of_z(norm, 0);
      space.bound[0] = key_of_z(norm, -quantile.bound);
      space.bound[1] = key_of_z(norm, quantile.bound);
    } else {
      space.zero = norm.shift >= 0 ? 0 : 1;
      space.bound[0] = norm.shift >= -quantile.bound ? 0 : 1;
      space.bound[1] = norm.shift >= quantile.bound ? 0 : 1;
    }
  }
  __syncthreads();
  const ChannelPlan& plan = space.plan;
  const bool valid = inside && !isnan(x);
  const uint32_t key = plan.norm.scale == 0 ? 0 : order_key(x, plan.norm.scale < 0);
  space.key[i] = valid ? key : kNoKey;
  const bool positive = key >= space.zero;
  LevelSums count;
  count.negatives = valid && !positive;
  const uint32_t negatives = static_cast<uint32_t>(merge_block(count, sums_shared).negatives);
  const LevelRule rule(quantile, negatives, plan.values - negatives);
  uint32_t rank = 0;
  for (uint32_t j = 0; j < n; ++j) {
    rank += QACT_MUTANT("cuda_counted_ties") ? space.key[j] < key : space.key[j] <= key;
  }
  const bool past = key >= space.bound[positive];
  const int64_t own = static_cast<int64_t>(rank) - (positive ? negatives : 0) + past;
  const int k = valid ? rule.level(positive, own) : 0;
  const float z = static_cast<float>(plan.norm.z(x));
  space.z[i] = valid ? z : INFINITY;
  space.weight[i] = static_cast<float>(rule.weight(positive));
  if (i == 0) {
    space.weight[kCounted] = static_cast<float>(rule.weight(false));
    space.weight[kCounted + 1] = static_cast<float>(rule.weight(true));
  }
  LevelSums sums;
  sums.level = k;
  sums.square = static_cast<unsigned long long>(k) * k;
  const float t = space.grid.t(x);
  Found found = {k, k};
  if (valid && !call.plain && plan.how != kNotFinite) {
    found.code += space.grid.cell(t);
    space.codes.add(found.code, k, 1, Places::at(space.grid, t));
  }
  sums = merge_block(sums, sums_shared);

  const LayerStats stats =
      norm_stats(solve, plan, static_cast<double>(sums.level), static_cast<double>(sums.square));
  if (inside) {
    write_value(call, solve, channel, i, x, found,
                OutNorm(solve, solve.affine_out(channel), stats));
    if (call.plain && call.density.data) {
      const float f =
          isnan(x) ? x : (isinf(x) ? 0.0f : direct_density(space, n, z, quantile.bandwidth, bound));
      call.density.at(channel, i) = from_float<T>(f);
    }
  }
  if (solve.context) {
    space.context[i] = 0;
    __syncthreads();
    if (valid && plan.how != kNotFinite) {
      int64_t equals = 0;
      for (uint32_t j = 0; j < n; ++j) equals += space.z[j] == z;
      const int64_t of_its_sign = positive ? plan.values - negatives : negatives;
      const bool tie = context_is_tie(equals - QACT_MUTANT("cuda_counted_tie"), of_its_sign);
      atomicAdd(&space.context[tie ? context_tie_bin(z) : context_bin(z)], 1u);
    }
    __syncthreads();
    solve.context_of(channel)[i] = space.context[i] * kContextUnit;
  }
  if (solve.table) {
    const Team<kCounted> team;
    CodeTable& table = solve.table_of(channel);
    if (plan.how == kNotFinite) {
      clear_table(team, stats, table);
    } else {
      fill_table(
          team, space.codes, space.grid, Places::of_values(space.grid), in,
          static_cast<double>(plan.values), stats,
          [&](double at) {
            return direct_density(space, n, static_cast<float>(at), quantile.bandwidth, bound);
          },
          space.table, table);
    }
  }
  if (i == 0) solve.put_stats(channel, stats);
}

}  // namespace qact::core::cuda
