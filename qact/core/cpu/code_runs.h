// Outputs and gradients by code, over a run of one channel's values. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// y.
template <class Real>
struct OutputRun {
  const OutputTable<Real>& table;

  static void one_vector(const OutputTable<Real>& table, const uint8_t* code, Real* y) {
    OutputRun{table}(code, kLanes<Real>, y);
  }
  static void two_vectors(const OutputTable<Real>& table, const uint8_t* code, Real* first,
                          Real* second) {
    one_vector(table, code, first);
    one_vector(table, code + kLanes<Real>, second);
  }

  void operator()(const uint8_t* code, int64_t n, Real* y) const {
    for (int64_t i = 0; i < n - QACT_MUTANT("output_tail"); ++i) y[i] = table.y[code[i]];
  }
};
// dx.
template <class Real>
struct GradRun {
  const GradTable<Real>& table;

  static void one_vector(const GradTable<Real>& table, const Real* dy, const uint8_t* code,
                         Real* dx) {
    GradRun{table}(dy, code, kLanes<Real>, dx);
  }
  static void two_vectors(const GradTable<Real>& table, const Real* dy, const uint8_t* code,
                          Real* first, Real* second) {
    one_vector(table, dy, code, first);
    one_vector(table, dy + kLanes<Real>, code + kLanes<Real>, second);
  }

  void operator()(const Real* dy, const uint8_t* code, int64_t n, Real* dx) const {
    for (int64_t i = 0; i < n - QACT_MUTANT("grad_output_tail"); ++i)
      dx[i] = dy[i] * table.scale[code[i]] + table.shift[code[i]];
  }
};
}  // namespace
}  // namespace qact::core::cpu
