// The codes of a channel's values (core/codes.h): where the cells lie that refine levels, and how
// many values each code has.
#pragma once

#include <cstdint>

#include "qact/core/codes.h"
#include "qact/core/cuda/plan.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

// Cells of t, which is xhat in the order of z. Every step is rounded as it is told, so that cells
// never fall as t grows.
struct CodeGrid {
  float first, inverse, width;  // cell = (u(t) - first) * inverse; a cell's, of u
  int32_t last;
  float bin_first, bin_width;  // t of the middle of bin 0, and of a bin
  float mean, scale;           // t = (x - mean) * scale
  float farthest;              // |t| is no larger

  CodeGrid() = default;
  // weight: the inner norm's. Without a norm there is one cell: codes are levels.
  __device__ CodeGrid(const ChannelPlan& plan, const NormIn& norm_in, double weight, int levels)
      : first(0),
        inverse(0),
        width(0),
        last(0),
        bin_first(0),
        bin_width(0),
        mean(0),
        scale(0),
        farthest(0) {
    if (!norm_in.present) return;
    const Summary<float>& s = plan.summary;
    const double per_deviation = (weight < 0 ? -1 : 1) * rsqrt(s.variance + norm_in.eps);
    const double a = (s.low - s.mean) * per_deviation, b = (s.high - s.mean) * per_deviation;
    last = max(kCodes - 1 - levels, 1) - 1;  // one less than on the CPU: 255 marks heavy bins
    first = u(static_cast<float>(fmin(a, b)));
    const float range = u(static_cast<float>(fmax(a, b))) - first;
    inverse = range > 0 ? static_cast<float>(last + 1) / range : 0;
    width = range / static_cast<float>(last + 1);
    mean = static_cast<float>(s.mean);
    scale = static_cast<float>(per_deviation);
    farthest = static_cast<float>(fmax(fabs(a), fabs(b)));
    if (weight == 0) return;
    const double width = plan.bins.z_width / fabs(weight);
    bin_width = static_cast<float>(width);
    bin_first =
        static_cast<float>((plan.bins.z_first - plan.norm.shift) / fabs(weight) + 0.5 * width);
  }

  __device__ int cell(float t) const {
    const int at = __float2int_rd(__fmul_rn(__fsub_rn(u(t), first), inverse));
    return min(max(at, 0), last);
  }
  // The first bin of a cell, the 0th aside. Doubles never fall as a cell's u grows, of floats.
  __device__ int first_bin(int of_cell) const {
    const double at = static_cast<double>(first) + of_cell * static_cast<double>(width);
    const double size = fabs(at), rest = fmax(1 - size, 1e-9);
    const double edge = copysign(2 * sqrt(size * (2 - size)) / rest, at);
    return static_cast<int>(fmin(fmax(ceil((edge - bin_first) / bin_width), 0.0), 65535.0));
  }
  __device__ float t(float x) const { return __fmul_rn(__fsub_rn(x, mean), scale); }

 private:
  __device__ static float u(float t) {
    const float part = __fmul_rn(t, 0.5f);
    const float root = __fsqrt_rn(__fadd_rn(1.0f, __fmul_rn(part, part)));
    return copysignf(__fsub_rn(1.0f, __fdiv_rn(1.0f, root)), t);
  }
};

// The cells of a channel's bins: where each begins.
struct BinCells {
  uint16_t first[kCodes];
  int32_t last;

  // By a team, which has to meet before they are asked for.
  __device__ void fill(const CodeGrid& grid, uint32_t thread, uint32_t threads) {
    if (thread == 0) last = grid.inverse > 0 ? grid.last : 0;
    for (uint32_t c = thread; c < kCodes; c += threads) {
      first[c] = static_cast<uint16_t>(grid.first_bin(static_cast<int>(c)));
    }
  }
  __device__ int of(int bin) const {
    return first_where(1, last + 1, [&](int c) { return first[c] > bin; }) - 1 +
           QACT_MUTANT("cuda_bin_cells");
  }
  // The same, where `cell` is that of an earlier bin.
  __device__ int of_next(int cell, int bin) const {
    while (cell < last && first[cell + 1] <= bin) ++cell;
    return cell;
  }
};

// The values of every code: how many, their level, and the sum of their places: bins, or, value by
// value, steps of t. Whole numbers, so that the order of additions does not matter.
template <class Count>
struct CodeTotals {
  uint32_t n[kCodes], level[kCodes];
  Count place[kCodes];

  __device__ void clear(uint32_t thread, uint32_t threads) {
    for (uint32_t c = thread; c < kCodes; c += threads) {
      n[c] = level[c] = 0;
      place[c] = 0;
    }
  }
  __device__ void add(int code, int of_level, uint32_t count, Count at) {
    atomicAdd(&n[code], count);
    atomicAdd(&place[code], at);
    level[code] = static_cast<uint32_t>(of_level);  // whoever adds to a code says the same
  }
  __device__ void remove(int code, uint32_t count, Count at) {
    atomicAdd(&n[code], 0u - count);
    atomicAdd(&place[code], Count{0} - (QACT_MUTANT("cuda_code_remove") ? Count{0} : at));
  }
};

// t of a place is first + width * place.
struct Places {
  static constexpr double kSteps = 1 << 20;
  double first, width;

  __device__ static Places of_bins(const CodeGrid& grid) {
    return {grid.bin_first, grid.bin_width};
  }
  __device__ static Places of_values(const CodeGrid& grid) {
    return {-static_cast<double>(grid.farthest), grid.farthest / kSteps};
  }
  // Of a value.
  __device__ static uint32_t at(const CodeGrid& grid, float t) {
    if (!(grid.farthest > 0)) return 0;
    const double step = rint((t / static_cast<double>(grid.farthest) + 1) * kSteps);
    return static_cast<uint32_t>(fmin(fmax(step, 0.0), 2 * kSteps));
  }
};

// Adds up what a thread has of ascending bins, and hands it on where the code changes.
template <class Count>
class CodeRun {
 public:
  __device__ explicit CodeRun(CodeTotals<Count>& totals) : totals_(totals) {}

  __device__ void add(int code, int level, uint32_t count, int bin) {
    if (count == 0) return;
    if (code != code_) flush();
    code_ = code, level_ = level;
    n_ += count;
    place_ += static_cast<Count>(count) * static_cast<Count>(bin);
  }
  __device__ void flush() {
    if (n_ > 0) totals_.add(code_, level_, n_, place_);
    n_ = 0;
    place_ = 0;
  }

 private:
  CodeTotals<Count>& totals_;
  int code_ = -1, level_ = 0;
  uint32_t n_ = 0;
  Count place_ = 0;
};

}  // namespace qact::core::cuda
