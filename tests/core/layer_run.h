// The fused layer, forward and backward, with all that it leaves behind.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/quantile.h"
#include "qact/core/reference.h"
#include "tests/core/cases.h"
#include "tests/core/layer_check.h"

namespace qact::core::testing {

// Affine parameters that differ from channel to channel; some weights are negative.
struct Affines {
  std::vector<float> weight_in, bias_in, weight_out, bias_out;

  explicit Affines(int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float k = static_cast<float>(c % 5);
      weight_in.push_back((c % 3 == 1 ? -1.0f : 1.0f) * (0.6f + 0.3f * k));
      bias_in.push_back(0.25f * (k - 2));
      weight_out.push_back((c % 4 == 2 ? -1.0f : 1.0f) * (1.5f - 0.2f * k));
      bias_out.push_back(0.1f * k);
    }
  }

  reference::LayerParameters of(int64_t c) const {
    reference::LayerParameters out;
    out.weight_in = weight_in[c];
    out.bias_in = bias_in[c];
    out.weight_out = weight_out[c];
    out.bias_out = bias_out[c];
    return out;
  }
};

struct LayerRun {
  Tensor y, grad_x;
  std::vector<uint8_t> level;
  std::vector<int32_t> density;
  std::vector<double> stats;
  std::vector<int64_t> context;
  std::vector<double> grad_affine;

  LayerRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
           const Execution& execution, Layout layout = Layout::contiguous, double eps = 1e-5,
           const Scope& scope = {})
      : y(x.shape(), x.view().dtype, layout), grad_x(x.shape(), x.view().dtype, layout) {
    const Shape& shape = x.shape();
    level.resize(shape.channels * shape.context_size());
    density.resize(shape.channels * kDensityNodes);
    stats.resize(shape.channels * kLayerStats);
    context.resize(shape.channels * kContextBins);
    grad_affine.resize(shape.channels * 4);
    LayerForward forward;
    forward.quantile = quantile;
    forward.eps = eps;
    forward.scope = scope;
    forward.shape = shape;
    forward.x = x.view();
    forward.y = y.view();
    forward.level = level.data();
    forward.weight_in = {affines.weight_in.data()};
    forward.bias_in = {affines.bias_in.data()};
    forward.weight_out = {affines.weight_out.data()};
    forward.bias_out = {affines.bias_out.data()};
    forward.density = density.data();
    forward.stats = stats.data();
    forward.context = context.data();
    layer_forward(forward, execution);
    LayerBackward backward;
    backward.quantile = quantile;
    backward.scope = scope;
    backward.eps = eps;
    backward.shape = shape;
    backward.grad_y = grad_y.view();
    backward.x = x.view();
    backward.level = level.data();
    backward.weight_in = forward.weight_in;
    backward.bias_in = forward.bias_in;
    backward.weight_out = forward.weight_out;
    backward.density = density.data();
    backward.stats = stats.data();
    backward.grad_x = grad_x.view();
    backward.grad_affine = grad_affine.data();
    layer_backward(backward, execution);
  }

  std::vector<int> levels_of(int64_t c) const {
    const int64_t n = y.shape().context_size();
    return {level.begin() + c * n, level.begin() + (c + 1) * n};
  }

  LayerFound found(int64_t c) const {
    LayerStats own;
    std::memcpy(&own, stats.data() + c * kLayerStats, sizeof(own));
    const double* affine = grad_affine.data() + 4 * c;
    return {levels_of(c), y.get(c),  grad_x.get(c), own.mean_in, own.var_in, own.mean_out,
            own.var_out,  affine[0], affine[1],     affine[2],   affine[3]};
  }

  bool operator==(const LayerRun& other) const = default;
};

}  // namespace qact::core::testing
