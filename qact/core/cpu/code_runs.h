// Outputs and gradients by code, over a run of one channel's values. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/stored.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// y.
template <class Real, class Stored>
struct OutputRun {
  const OutputTable<Real>& table;

  static Stored value(const OutputTable<Real>& table, uint8_t code) {
    if constexpr (std::is_same_v<Stored, Real>) {
      return table.y[code];
    } else {
      return {(uint16_t)table.words[code]};
    }
  }

  // Of one vector of lanes, and of one in each of two images.
  static void one_vector(const OutputTable<Real>& table, const uint8_t* code, Stored* y) {
    OutputRun{table}(code, kLanes<Real>, y);
  }
  static void two_vectors(const OutputTable<Real>& table, const uint8_t* code, Stored* first,
                          Stored* second) {
    one_vector(table, code, first);
    one_vector(table, code + kLanes<Real>, second);
  }

  void operator()(const uint8_t* code, int64_t n, Stored* y) const {
    for (int64_t i = 0; i < n - QACT_MUTANT("output_tail"); ++i) y[i] = value(table, code[i]);
  }
};

// dx.
template <class Real, class Stored>
struct GradRun {
  const GradTable<Real>& table;

  static void one_vector(const GradTable<Real>& table, const Real* dy, const uint8_t* code,
                         Stored* dx) {
    GradRun{table}(dy, code, kLanes<Real>, dx);
  }
  static void two_vectors(const GradTable<Real>& table, const Real* dy, const uint8_t* code,
                          Stored* first, Stored* second) {
    one_vector(table, dy, code, first);
    one_vector(table, dy + kLanes<Real>, code + kLanes<Real>, second);
  }

  // One by one, then narrowed by lanes.
  static void some(const GradTable<Real>& table, const Real* dy, const uint8_t* code, int n,
                   Stored* dx) {
    Real lanes[kLanes<Real>] = {};
    for (int l = 0; l < n; ++l) lanes[l] = dy[l] * table.scale[code[l]] + table.shift[code[l]];
    store_stored_some(dx, load<Vec<Real>>(lanes), n);
  }

  void operator()(const Real* dy, const uint8_t* code, int64_t n, Stored* dx) const {
    constexpr int kN = kLanes<Real>;
    for (int64_t i = 0; i < n - QACT_MUTANT("grad_output_tail"); i += kN) {
      some(table, dy + i, code + i, n - i < kN ? (int)(n - i) : kN, dx + i);
    }
  }
};

}  // namespace
}  // namespace qact::core::cpu
