// The fused layer, forward and backward, with all that it leaves behind.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/contexts.h"
#include "qact/core/cpu/scope.h"
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
  std::vector<uint8_t> code, level;
  std::vector<int32_t> table;
  std::vector<double> stats;
  std::vector<int64_t> context;
  std::vector<double> grad_affine;

  LayerRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
           const Execution& execution, Layout layout = Layout::contiguous, double eps = 1e-5,
           const Scope& scope = {})
      : y(x.shape(), x.view().dtype, layout), grad_x(x.shape(), x.view().dtype, layout) {
    const Shape& shape = x.shape();
    const auto kept = kept_contexts(scope, shape, x.view().dtype);
    code.resize(kept.code_channels * shape.context_size());
    table.resize(kept.tables * kCodeTableWords);
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
    forward.weight_in = {affines.weight_in.data()};
    forward.bias_in = {affines.bias_in.data()};
    forward.weight_out = {affines.weight_out.data()};
    forward.bias_out = {affines.bias_out.data()};
    forward.code = code.data();
    forward.table = table.data();
    forward.stats = stats.data();
    forward.context = context.data();
    layer_forward(forward, execution);
    find_levels(forward, execution);
    LayerBackward backward;
    backward.quantile = quantile;
    backward.scope = scope;
    backward.eps = eps;
    backward.shape = shape;
    backward.grad_y = grad_y.view();
    if (kept.x) backward.x = x.view();
    backward.weight_in = forward.weight_in;
    backward.bias_in = forward.bias_in;
    backward.weight_out = forward.weight_out;
    backward.code = code.data();
    backward.table = table.data();
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

 private:
  // Whatever is kept: those of the whole batch's contexts.
  void find_levels(LayerForward call, const Execution& execution) {
    const Shape& shape = call.shape;
    std::vector<int32_t> tables(shape.channels * kCodeTableWords);
    std::vector<double> unused(shape.channels * kLayerStats);
    level.resize(shape.channels * shape.context_size());
    call.scope = {};
    call.y = {};
    call.code = level.data();
    call.table = tables.data();
    call.stats = unused.data();
    call.context = nullptr;
    cpu::layer_forward_whole(call, execution);
    for (int64_t c = 0; c < shape.channels; ++c) {
      const auto* of = reinterpret_cast<const CodeTable*>(tables.data() + c * kCodeTableWords);
      uint8_t* codes = level.data() + c * shape.context_size();
      for (int64_t i = 0; i < shape.context_size(); ++i) codes[i] = of->level[codes[i]];
    }
  }
};

}  // namespace qact::core::testing
