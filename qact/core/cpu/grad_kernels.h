// The fused layer's gradient by code; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/code_kernels.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

template <class Real>
void grad_sums(const Real* dy, const uint8_t* code, int64_t n, CodeSums& sums,
               Prefetch& shared_next, Prefetch& shared_written) {
  Prefetch next = shared_next, written = shared_written;
  int64_t i = 0;
  for (; i + CodeSums::kTables <= n; i += CodeSums::kTables) {
    if (i % kPerLine == 0) {
      prefetch_line<false>(next);
      prefetch_line<true>(written);
    }
    uint32_t four;
    std::memcpy(&four, code + i, sizeof(four));
    sums.of[0][four & 0xff] += (double)dy[i];
    sums.of[1][four >> 8 & 0xff] += (double)dy[i + 1];
    sums.of[2][four >> 16 & 0xff] += (double)dy[i + 2];
    sums.of[3][four >> 24] += (double)dy[i + 3];
  }
  for (; i < n - QACT_MUTANT("grad_sums_tail"); ++i) sums.of[0][code[i]] += (double)dy[i];
}

template <class Real>
void grad_output(const Real* dy, const uint8_t* code, int64_t code_pitch, const RunBlock& runs,
                 const GradTable<Real>* tables, DType dtype, void* out) {
  with_stored<Real>(out, dtype, [&]<class Stored>(Stored* dx) {
    using Run = GradRun<Real, Stored>;
    if (runs.size == kLanes<Real>) {
      return for_each_two_runs(dx, runs, [&](bool both, Stored* to, int64_t strip, int64_t c) {
        const uint8_t* codes = code + c * (code_pitch - runs.pitch) + strip;
        if (!both) return grad_one_by_one(tables[c], dy + strip, codes, runs.size, to);
        Run::two_vectors(tables[c], dy + strip, codes, to, to + runs.image_stride);
      });
    }
    for_each_channel_run(dx, runs, [&](int64_t c) {
      const uint8_t* codes = code + c * (code_pitch - runs.pitch);
      return [dy, codes, run = Run{tables[c]}](Stored* to, int64_t strip, int64_t size) {
        run(dy + strip, codes + strip, size, to);
      };
    });
  });
}

void grad_means(const CodeSums* blocks, int64_t count, int64_t step, const CodeTable& table,
                GradSums& out) {
  using D = Vec<double>;
  D dy_sum{}, dy_k{}, f_dy{}, f_dy_input{};
  for (int c = 0; c < kCodes; c += 8) {
    D dy{};
    for (int64_t b = 0; b < count - (count > 1 && QACT_MUTANT("grad_sums_block")); ++b) {
      const auto& of = blocks[b * step].of;
      dy += (load<D>(of[0] + c) + load<D>(of[1] + c)) + (load<D>(of[2] + c) + load<D>(of[3] + c));
    }
    const D f = dy * load_as<double>(table.density + c);
    dy_sum += dy;
    dy_k += dy * load_as<double>(table.level + c);
    f_dy += f;
    f_dy_input += f * load_as<double>(table.input + c);
  }
  out = {sum_lanes(dy_sum), sum_lanes(dy_k), sum_lanes(f_dy), sum_lanes(f_dy_input)};
}

// To whole multiples of a unit. The unit is NaN where a value is not finite, and 0 where none is
// large enough for one: then the values stay as they are.
inline void round_to_units(float* values, int16_t* units, float& unit) {
  using V = Vec<float>;
  constexpr float kTiny = 1e-30f;
  V most{}, odd{};
  for (int c = 0; c < kCodes; c += 16) {
    const V v = load<V>(values + c);
    most = maximum(most, absolute(v));
    odd += v - v;
  }
  float lanes[16], odd_lanes[16], farthest = 0, not_finite = 0;
  store(lanes, most);
  store(odd_lanes, odd);
  for (int l = 0; l < 16; ++l) {
    farthest = lanes[l] > farthest ? lanes[l] : farthest;
    not_finite += odd_lanes[l];
  }
  constexpr float kUnits = 32766;  // rounding the quotient up reaches no further than 32767
  unit = not_finite != 0 ? not_finite : farthest > kTiny ? farthest / kUnits : 0;
  if (unit == 0) return;
  const float inverse = not_finite != 0 ? 0 : 1 / unit;
  for (int c = 0; c < kCodes; c += 16) {
    const V at = load<V>(values + c) * inverse;
    const auto whole = truncate<float>(at + with_sign(all<V>(0.5f), at));
    store(units + c, convert<Lanes<int16_t, 16>>(whole));
    store(values + c, to_real<float>(whole) * unit);
  }
}

template <class Real>
void grad_table(const GradLine& line, const CodeTable& table, GradTable<Real>& map) {
  const Real by_f = (Real)line.by_f, plain = (Real)line.plain, by_k = (Real)line.by_k;
  const Real by_input = (Real)line.by_input, rest = (Real)line.rest;
  for (int c = 0; c < kCodes; c += kLanes<Real>) {
    const auto f = load_as<Real>(table.density + c), k = load_as<Real>(table.level + c);
    store(map.scale + c, f * by_f);
    store(map.shift + c,
          f * (k * by_k + plain) + (load_as<Real>(table.input + c) * by_input + rest));
  }
  if constexpr (sizeof(Real) == 4) {
    round_to_units(map.scale, map.scale_units, map.scale_unit);
    round_to_units(map.shift, map.shift_units, map.shift_unit);
  }
}

}  // namespace
}  // namespace qact::core::cpu
