// The table of a channel's codes: all that the backward pass needs of the channel beside them.
#pragma once

#include <cstdint>

#include "qact/core/cuda/codes.cuh"
#include "qact/core/cuda/team.cuh"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cuda {

struct CodeTableSpace {
  float density[kCodes], input[kCodes];
};

// density_at(z); `n` values in all. The team has met since the totals were made, and its first
// thread has the stats.
template <class Team, class Totals, class Density>
__device__ inline void fill_table(const Team& team, const Totals& totals, const CodeGrid& grid,
                                  const Places& places, const Affine& in, double n,
                                  const LayerStats& stats, const Density& density_at,
                                  CodeTableSpace& space, CodeTable& out) {
  constexpr double kUnits = 32767;
  const double unit = grid.farthest / kUnits, sign = in.weight < 0 ? -1 : 1;
  for (int c = team.thread; c < kCodes; c += Team::kThreads) {
    float input = 0, density = 0;
    if (totals.n[c] > 0) {
      const double place = static_cast<double>(totals.place[c]) / totals.n[c];
      const double xhat = sign * (places.first + places.width * place);
      if (unit > 0) input = static_cast<float>(fmin(fmax(rint(xhat / unit), -kUnits), kUnits));
      density = density_at(in.weight * unit * input + in.bias);
    }
    space.input[c] = input;
    space.density[c] = density;
    out.input[c] = static_cast<int16_t>(input);
    out.density[c] = density;
    out.level[c] = static_cast<uint8_t>(totals.level[c]);
  }
  team.sync();
  if (team.warp > 0) return;
  double f = 0, f_k = 0, f_input = 0, f_k_input = 0;
  for (int c = team.lane; c < kCodes; c += kWarp) {
    const double weight = static_cast<double>(totals.n[c]) * space.density[c];
    f += weight;
    f_k += weight * totals.level[c];
    f_input += weight * space.input[c];
    f_k_input += weight * totals.level[c] * space.input[c];
  }
  for (double* sum : {&f, &f_k, &f_input, &f_k_input}) {
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      *sum += __shfl_xor_sync(0xffffffffu, *sum, mask);
    }
  }
  if (team.lane > 0) return;
  const double share = 1 / n;
  out.var_in = stats.var_in;
  out.mean_out = stats.mean_out;
  out.var_out = stats.var_out;
  out.input_unit = unit;
  out.f = f * share;
  out.f_k = f_k * share;
  out.f_xhat = unit * f_input * share;
  out.f_k_xhat = QACT_MUTANT("cuda_table_f_k_xhat") ? 0 : unit * f_k_input * share;
}

// Of a channel that is NaN.
template <class Team>
__device__ inline void clear_table(const Team& team, const LayerStats& stats, CodeTable& out) {
  uint32_t* words = reinterpret_cast<uint32_t*>(&out);
  for (int i = team.thread; i < kCodeTableWords; i += Team::kThreads) words[i] = 0;
  team.sync();
  if (team.thread == 0) out.mean_out = out.var_out = stats.var_out;
}

}  // namespace qact::core::cuda
