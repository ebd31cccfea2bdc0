// Values ranked by given quantiles, forward and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/quantile.h"
#include "tests/core/cases.h"

namespace qact::core::testing {

// z = scale * x + shift, ranked among the quantiles of its own context.
struct ApplyRun {
  static constexpr double kBandwidth = 0.5;

  std::vector<double> scale, shift, out_scale, out_shift;
  std::vector<int64_t> context;
  std::vector<double> quantiles;
  Tensor y, rank, grad_x;
  std::vector<double> grad_affine;

  ApplyRun(Tensor& x, Tensor& grad_y, int levels, const Execution& execution,
           Layout layout = Layout::contiguous)
      : y(x.shape(), x.view().dtype, layout),
        rank(x.shape(), x.view().dtype, layout),
        grad_x(x.shape(), x.view().dtype, layout) {
    const int64_t channels = x.shape().channels;
    for (int64_t c = 0; c < channels; ++c) {
      scale.push_back(c % 2 ? -0.5 : 1.5);
      shift.push_back(0.125 * static_cast<double>(c % 4));
      out_scale.push_back(2 - 0.25 * static_cast<double>(c % 3));
      out_shift.push_back(-0.5);
    }
    context.resize(channels * kContextBins);
    quantiles.resize(channels * levels);
    grad_affine.resize(channels * 4);
    const auto vector = [](const std::vector<double>& v) { return ChannelVector{v.data(), true}; };
    context_build({x.shape(), x.view(), vector(scale), vector(shift), context.data()}, execution);
    Quantile quantile;
    quantile.levels = levels;
    for (int64_t c = 0; c < channels; ++c) {
      context_quantiles(ConstContextRow(context.data() + c * kContextBins, kContextBins), quantile,
                        quantiles.data() + c * levels);
    }
    QuantileApply apply;
    apply.levels = levels;
    apply.shape = x.shape();
    apply.x = x.view();
    apply.y = y.view();
    apply.scale = vector(scale);
    apply.shift = vector(shift);
    apply.out_scale = vector(out_scale);
    apply.out_shift = vector(out_shift);
    apply.quantiles = quantiles.data();
    quantile_apply(apply, execution);
    apply.quantised = false;
    apply.y = rank.view();
    apply.out_scale = apply.out_shift = {};
    quantile_apply(apply, execution);
    QuantileApplyBackward backward;
    backward.levels = levels;
    backward.bandwidth = kBandwidth;
    backward.shape = x.shape();
    backward.grad_y = grad_y.view();
    backward.x = x.view();
    backward.grad_x = grad_x.view();
    backward.scale = vector(scale);
    backward.shift = vector(shift);
    backward.out_scale = vector(out_scale);
    backward.quantiles = quantiles.data();
    backward.grad_affine = grad_affine.data();
    quantile_apply_backward(backward, execution);
  }

  bool operator==(const ApplyRun& other) const = default;
};

}  // namespace qact::core::testing
