// How far each result may lie from the oracle's, and why: the one place that says so.
//
// u is the unit roundoff of the type that the kernels compute in (float64: 2^-53, all others:
// 2^-24). What is stored is rounded once more to its own type. |t|_1 is the sum of |terms|.
//
//   term                exact            binned           because
//   levels              none             1/4 level        a bin holds half a level at most, and all
//                                                         its values have the level of its middle
//   y, from levels      4u (128u)        the same         one multiplication, one addition
//   mean_in, var_in     4u               the same         float sums run over 32 values
//   mean_out, var_out   1e-14            the same         sums of whole numbers
//   bias_out            8u (64u) |dy|_1  the same         float sums run over 128 values; needs no
//   weight_out          8u (64u) |t|_1   the same         density
//   bias_in, weight_in  0.3% |t|_1       the same         by code: f and xhat are those of a code's
//     few values        1% |t|_1         the same         mean value, and its values lie around it
//   grad_x              1%               1%
//     few values        1.2%             2%               off most between two nodes, and bins
//                                                         spread a value over their width
//   context             0 values         a bin's values   where a bin straddles an edge
//
// In brackets: float64, where the oracle's own sums are no better. By code, each term of grad_x,
// bias_in and weight_in may also be off by 0.1% of what cancels in it (a code's xhat is that of the
// middles of bins, and maps are kept to 1/32767 of the largest), and a single value of grad_x by
// five times the bound of all.
//
// Where the density is kept by value instead (CUDA): grad_x 0.5% (binned 0.6%) and the sums 0.1%,
// with few values 1.2% (2%) and 0.5%; the density's grid has nodes a quarter bandwidth apart, kept
// to 1/32767 of its peak.
//
// With levels given, all else follows from them: so levels are held to their bound, and the rest to
// what the levels give. Gradients that concentrate in the tails: code_test.cpp.
#pragma once

#include <cmath>

#include "qact/core/view.h"

namespace qact::core::testing::tolerance {

// The unit roundoff of what the kernels compute in, and of what is stored.
inline double computed(DType dtype) { return dtype == DType::f64 ? 0x1p-53 : 0x1p-24; }
inline double stored(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0x1p-8;
  }
}
// Half the distance between the smallest numbers of a type.
inline double smallest(DType dtype) {
  return dtype == DType::f64 ? 0 : dtype == DType::f16 ? 0x1p-25 : 0x1p-134;
}

// In levels.
inline double level(bool exact) { return exact ? 1e-9 : 0.25 + 1e-4; }
// Bins rank x itself, and only their sides depend on the mean, which is off by `mean_off` in units
// of z. The exact algorithm ranks z, rounded, as is the mean that it is taken from.
inline double z(DType dtype, bool exact, double z, double scaled_mean, double mean_off) {
  if (!exact) return mean_off + 1e-12 * (1 + std::abs(z));
  const double rounded = dtype == DType::f64 ? 1e-12 : 4 * computed(dtype);
  return mean_off + rounded * (1 + std::abs(z) + std::abs(scaled_mean));
}

// In units of |scale| + |bias|.
inline double y(DType dtype) { return (dtype == DType::f64 ? 128 : 4) * computed(dtype); }

// In units of the values' distance from the first one, and of its square.
inline double moments(DType dtype) { return (dtype == DType::f64 ? 64 : 4) * computed(dtype); }
inline constexpr double kLevelMoments = 1e-14;

// In units of |t|_1.
inline double sum(DType dtype) { return (dtype == DType::f64 ? 64 : 8) * computed(dtype); }

// What the backward pass works from.
enum class Kept { codes, levels };

// Few values: so few distinct ones that the errors of their densities do not cancel.
inline constexpr int kFewValues = 128;
inline double density_sum(Kept kept, bool few) {
  return kept == Kept::codes ? (few ? 0.01 : 0.003) : (few ? 0.005 : 0.001);
}
inline double density(Kept kept, bool exact, bool few) {
  if (few) return exact ? 0.012 : 0.02;
  return kept == Kept::codes ? 0.01 : exact ? 0.005 : 0.006;
}
// Of terms that cancel.
inline double apart(Kept kept, DType dtype) {
  return 2 * sum(dtype) + (kept == Kept::codes ? 0.001 : 0);
}
inline double one_value(Kept kept) { return kept == Kept::codes ? 5 : 1; }

}  // namespace qact::core::testing::tolerance
