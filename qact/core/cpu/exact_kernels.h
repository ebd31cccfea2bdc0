// Exact sums of a strip (exact_moments.h), a vector at a time.
#pragma once

#include <cstdint>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// x = 2^21 a + b in units, where double holds the sums of a, b and their products: 2^42 times as
// many as there are values in a lane.
inline bool whole_sums_of(const float* x, int64_t n, double unit, WholeSums& sums) {
  constexpr int kN = kLanes<double>;
  using L = Lanes<double, kN>;
  using Values = Lanes<float, kN>;
  const double coarse = 0x1p21 * unit;
  // What is added to this and taken off again is rounded to multiples of the unit.
  const L to_coarse = all<L>(0x1.8p52 * coarse), to_unit = all<L>(0x1.8p52 * unit);
  L of_a{}, of_b{}, of_aa{}, of_ab{}, of_bb{}, rest{};
  const auto add = [&](const Values& values) {
    const L v = convert<L>(values);
    const L a = (v + to_coarse) - to_coarse, b = v - a;
    const L left = b - ((b + to_unit) - to_unit);
    of_a += a;
    of_b += b;
    of_aa += a * a;
    of_ab += a * b;
    of_bb += b * b;
    rest += left * left;
  };
  int64_t i = 0;
  for (; i + kN <= n; i += kN) add(load<Values>(x + i));
  if (i < n && !QACT_MUTANT("whole_sums_tail")) {
    add(load_some<Values>(x + i, static_cast<int>(n - i), 0.0f));
  }
  const auto total = [](const L& lanes, double per_unit, int64_t& to) {
    double lane[kN];
    store(lane, lanes);
    to = 0;
    for (const double v : lane) to += static_cast<int64_t>(v * per_unit);
  };
  double left[kN];
  store(left, rest);
  for (const double v : left) {
    if (v != 0 && !QACT_MUTANT("whole_sums_rest")) return false;
  }
  int64_t a, b, aa, ab, bb;
  total(of_a, 1 / coarse, a);
  total(of_b, 1 / unit, b);
  total(of_aa, 1 / coarse / coarse, aa);
  total(of_ab, 1 / coarse / unit, ab);
  total(of_bb, 1 / unit / unit, bb);
  using Signed = __int128;
  sums.sum = a * (1 << 21) + b;
  sums.squares = static_cast<unsigned __int128>(static_cast<Signed>(aa) * (int64_t{1} << 42) +
                                                static_cast<Signed>(ab) * (int64_t{1} << 22) + bb);
  return true;
}
// One after the other.
inline bool whole_sums_of(const double*, int64_t, double, WholeSums&) { return false; }

template <class Real>
bool whole_sums(const Real* x, int64_t n, double unit, WholeSums& sums) {
  return whole_sums_of(x, n, unit, sums);
}

}  // namespace
}  // namespace qact::core::cpu
