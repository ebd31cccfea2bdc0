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
    context_build({x.shape(), x.view(), vector(scale), vector(shift), context.data()}, execution);
    Quantile quantile;
    quantile.levels = levels;
    for (int64_t c = 0; c < channels; ++c) {
      context_quantiles(ConstContextRow(context.data() + c * kContextBins, kContextBins), quantile,
                        quantiles.data() + c * levels);
    }
    quantile_apply(quantised(x), execution);
    quantile_apply(unquantised(x), execution);
    quantile_apply_backward(gradient(x, grad_y), execution);
  }

  QuantileApply quantised(Tensor& x) {
    QuantileApply call;
    call.levels = levels_of(x);
    call.shape = x.shape();
    call.x = x.view();
    call.y = y.view();
    call.scale = vector(scale);
    call.shift = vector(shift);
    call.out_scale = vector(out_scale);
    call.out_shift = vector(out_shift);
    call.quantiles = quantiles.data();
    return call;
  }
  QuantileApply unquantised(Tensor& x) {
    QuantileApply call = quantised(x);
    call.quantised = false;
    call.y = rank.view();
    call.out_scale = call.out_shift = {};
    return call;
  }
  QuantileApplyBackward gradient(Tensor& x, Tensor& grad_y) {
    QuantileApplyBackward call;
    call.levels = levels_of(x);
    call.bandwidth = kBandwidth;
    call.shape = x.shape();
    call.grad_y = grad_y.view();
    call.x = x.view();
    call.grad_x = grad_x.view();
    call.scale = vector(scale);
    call.shift = vector(shift);
    call.out_scale = vector(out_scale);
    call.quantiles = quantiles.data();
    call.grad_affine = grad_affine.data();
    return call;
  }

  bool operator==(const ApplyRun& other) const = default;

 private:
  static ChannelVector vector(const std::vector<double>& v) { return {v.data(), true}; }
  int levels_of(const Tensor& x) const {
    return static_cast<int>(static_cast<int64_t>(quantiles.size()) / x.shape().channels);
  }
};

}  // namespace qact::core::testing
