// Outputs and gradients by code, over a run of one channel's values. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/stored.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// y, looked up one by one.
template <class Real, class Stored>
inline void output_one_by_one(const OutputTable<Real>& table, const uint8_t* code, int64_t n,
                              Stored* y) {
  for (int64_t i = 0; i < n - QACT_MUTANT("output_tail"); ++i) {
    if constexpr (std::is_same_v<Stored, Real>) {
      y[i] = table.y[code[i]];
    } else {
      y[i].bits = (uint16_t)table.words[code[i]];
    }
  }
}

template <class Real, class Stored>
struct OutputRun {
  const OutputTable<Real>& table;

  // A vector of lanes each, where two images have them.
  static void two_vectors(const OutputTable<Real>& table, const uint8_t* code, Stored* first,
                          Stored* second) {
    output_one_by_one(table, code, kLanes<Real>, first);
    output_one_by_one(table, code + kLanes<Real>, kLanes<Real>, second);
  }

  void operator()(const uint8_t* code, int64_t n, Stored* y) const {
    output_one_by_one(table, code, n, y);
  }
};

// dx, looked up one by one, then narrowed by lanes. Rare where there are vectors for it: inlined,
// it would cost the loops around these registers.
template <class Real, class Stored>
[[gnu::noinline]] void grad_one_by_one(const GradTable<Real>& table, const Real* dy,
                                       const uint8_t* code, int64_t n, Stored* dx) {
  constexpr int kN = kLanes<Real>;
  for (int64_t i = 0; i < n - QACT_MUTANT("grad_output_tail"); i += kN) {
    const int some = n - i < kN ? (int)(n - i) : kN;
    Real lanes[kN] = {};
    for (int l = 0; l < some; ++l) {
      lanes[l] = dy[i + l] * table.scale[code[i + l]] + table.shift[code[i + l]];
    }
    store_stored_some(dx + i, load<Vec<Real>>(lanes), some);
  }
}

template <class Real, class Stored>
struct GradRun {
  const GradTable<Real>& table;

  static void two_vectors(const GradTable<Real>& table, const Real* dy, const uint8_t* code,
                          Stored* first, Stored* second) {
    grad_one_by_one(table, dy, code, kLanes<Real>, first);
    grad_one_by_one(table, dy + kLanes<Real>, code + kLanes<Real>, kLanes<Real>, second);
  }

  void operator()(const Real* dy, const uint8_t* code, int64_t n, Stored* dx) const {
    grad_one_by_one(table, dy, code, n, dx);
  }
};

}  // namespace
}  // namespace qact::core::cpu
