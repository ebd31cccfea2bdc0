// The density of sorted contexts, a vector of channels at a time. Included once per SIMD level.
//
// For distances d >= 0 in bandwidths,
//
//   exp(-d^2 / 2) = e^(-b d) (a0 cos(w d) + a1 sin(w d) + a2 cos(3 w d) + a3 sin(3 w d))
//
// to 3.6e-4 (a minimax fit, in the manner of Deriche's recursive filters). What is summed over all
// values below another is carried from value to value in order: by a product with the decay over
// the gap between the two. So is what lies above, in descending order.
#pragma once

#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

inline constexpr double kDecay = 1.87029931875, kTurn = 0.65188212;
inline constexpr double kTerms[4] = {1.7828765917709588, 4.471644365589888, -0.7832299444912684,
                                     -0.5249445816464302};
inline constexpr double kFarGap = 9;  // in bandwidths; the kernel is 0 from there on

// e^((-b + i w) d) and e^((-b + 3 i w) d), or sums of them.
template <class Real>
struct Waves {
  Vec<Real> real, imaginary, real3, imaginary3;

  void add(const Vec<Real>& weight) {
    real += weight;
    real3 += weight;
  }
  void decay(const Waves& by) {
    const Vec<Real> re = real, re3 = real3;
    real = re * by.real - imaginary * by.imaginary;
    imaginary = re * by.imaginary + imaginary * by.real;
    real3 = re3 * by.real3 - imaginary3 * by.imaginary3;
    imaginary3 = re3 * by.imaginary3 + imaginary3 * by.real3;
  }
  Vec<Real> density(const Real* terms) const {
    const Vec<Real> first = real * terms[0] + imaginary * terms[1];
    if (QACT_MUTANT("short_third_wave")) return first;
    return first + (real3 * terms[2] + imaginary3 * terms[3]);
  }
};

// Polynomials of a part of the gap, which are squared until they are of all of it. Exactly 1 for
// a gap of 0.
template <class Real>
inline Waves<Real> waves_of(const Vec<Real>& gap) {
  using V = Vec<Real>;
  const V one = all<V>(1), d = minimum(gap, all<V>((Real)kFarGap));
  const V t = d * (Real)(-kDecay / 16);
  V size = (((t * (Real)(1.0 / 24) + (Real)(1.0 / 6)) * t + (Real)0.5) * t + (Real)1) * t + one;
  for (int k = 0; k < 4; ++k) size = size * size;
  const V angle = d * (Real)(kTurn / 8), square = angle * angle;
  V cosine = (square * (Real)(1.0 / 24) - (Real)0.5) * square + one;
  V sine = ((square * (Real)(1.0 / 120) - (Real)(1.0 / 6)) * square + one) * angle;
  for (int k = 0; k < 3; ++k) {
    const V twice = sine + sine;
    const V next = one - twice * sine;
    sine = twice * cosine;
    cosine = next;
  }
  const V four = sine * sine * (Real)4;
  const V cosine3 = cosine * (one - four), sine3 = sine * (all<V>(3) - four);
  return {size * cosine, size * sine, size * cosine3, size * sine3};
}

}  // namespace
}  // namespace qact::core::cpu
