// One channel's norms in the fused layer: from its statistics to z, and from its levels to y.
#pragma once

#include <algorithm>
#include <cmath>

#include "qact/core/bin_plan.h"
#include "qact/core/codes.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core::cpu {

enum class How { binned, exact, not_finite };

struct ChannelNorm {
  Norm z;
  double weight = 1, bias = 0;  // z = weight * xhat + bias
  double inverse = 1;           // xhat = (x - mean) * inverse

  ChannelNorm() = default;
  ChannelNorm(const LayerForward& call, int64_t c, double mean, double variance)
      : weight(call.weight_in.at(c, 1.0)),
        bias(call.bias_in.at(c, 0.0)),
        inverse(1 / std::sqrt(variance + (QACT_MUTANT("eps_in") ? 0 : call.eps))) {
    z = {mean, weight * inverse, bias};
  }

  // How the channel is ranked: if binned, in those bins, and in none otherwise.
  template <class Real>
  How plan(const Summary<Real>& summary, const Quantile& quantile, BinPlan<Real>& bins) const {
    bins = {};
    if (!summary.finite() || !std::isfinite(z.scale) || !std::isfinite(z.shift)) {
      return How::not_finite;
    }
    if (!quantile.exact_for(summary.n) && z.scale != 0 &&
        bins.make(summary, z, quantile.bandwidth)) {
      return How::binned;
    }
    bins = {};
    return How::exact;
  }

  // In the order of z; of x, where z is the same for all.
  template <class Real>
  CodeCells cells(const Summary<Real>& summary, int levels) const {
    const double low = (static_cast<double>(summary.low) - summary.mean) * inverse;
    const double high = (static_cast<double>(summary.high) - summary.mean) * inverse;
    if (weight < 0) return CodeCells(-high, -low, levels);
    return CodeCells(low, high, levels);
  }
};

// The outer norm's statistics from the sums of levels over n values.
inline LayerStats layer_stats(double mean_in, double var_in, const LevelSums& sums, double n,
                              int levels) {
  LayerStats out{mean_in, var_in, 0, 0, 0, 0, 0, 0};
  out.mean_out = static_cast<double>(sums.k) / n / levels;
  out.var_out = std::max(
      0.0, static_cast<double>(sums.square) / n / levels / levels - out.mean_out * out.mean_out);
  return out;
}

// y by code, from the level of each code, as it is written.
template <class Real>
void set_outputs(const TensorKernels<Real>& kernels, const LayerForward& call, int64_t c,
                 const LayerStats& stats, const uint8_t* level, DType written,
                 OutputTable<Real>& out) {
  const double norm = call.weight_out.at(c, 1.0) /
                      std::sqrt(stats.var_out + (QACT_MUTANT("eps_out") ? 0 : call.eps));
  out.scale = static_cast<Real>(norm / call.quantile.levels);
  out.shift = static_cast<Real>(call.bias_out.at(c, 0.0) -
                                (QACT_MUTANT("mean_out") ? 0 : norm * stats.mean_out));
  kernels.output_table(level, written, out);
}

}  // namespace qact::core::cpu
