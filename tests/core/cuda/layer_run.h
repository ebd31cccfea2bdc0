// The fused layer of core/cuda, forward and backward, on the emulated device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/contexts.h"
#include "qact/core/cuda/cuda.h"
#include "tests/core/cases.h"
#include "tests/core/cuda/device_memory.h"
#include "tests/core/layer_check.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {

// x, its gradient and the results lie in the inner channels of tensors that are wider by so many on
// either side.
struct CudaLayerRun {
  Tensor y, grad_x;
  DeviceArray<uint8_t> code;
  DeviceArray<int32_t> table;
  DeviceArray<double> stats;
  DeviceArray<int64_t> context;
  DeviceArray<float> grad_affine;

  CudaLayerRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
               int64_t beside = 0, double eps = 1e-5)
      : y(x), grad_x(x), beside_(beside), shape_(x.shape()) {
    shape_.channels -= 2 * beside;
    code.resize(shape_.channels * shape_.context_size());
    table.resize(shape_.channels * kCodeTableWords);
    stats.resize(shape_.channels * kLayerStats);
    context.resize(shape_.channels * kContextBins);
    grad_affine.resize(shape_.channels * 4);
    const View in = x.view().from(0, beside);
    columns_ = shape_.spatial == 1 || in.spatial_stride != 1;
    LayerForward forward;
    forward.quantile = quantile;
    forward.eps = eps;
    forward.shape = shape_;
    forward.x = in;
    forward.y = y.view().from(0, beside);
    forward.weight_in = {affines.weight_in.data()};
    forward.bias_in = {affines.bias_in.data()};
    forward.weight_out = {affines.weight_out.data()};
    forward.bias_out = {affines.bias_out.data()};
    forward.code = code.data();
    forward.table = table.data();
    forward.stats = stats.data();
    forward.context = context.data();
    run_with_scratch(cuda::layer_forward_scratch(forward),
                     [&](const cuda::Stream& stream) { cuda::layer_forward(forward, stream); });
    LayerBackward backward;
    backward.quantile = quantile;
    backward.eps = eps;
    backward.shape = shape_;
    backward.grad_y = grad_y.view().from(0, beside);
    backward.weight_in = forward.weight_in;
    backward.bias_in = forward.bias_in;
    backward.weight_out = forward.weight_out;
    if (kept_contexts({}, shape_, in.dtype).others) {
      backward.code = code.data();
      backward.table = table.data();
    } else {
      backward.x = in;
    }
    backward.grad_x = grad_x.view().from(0, beside);
    run_with_scratch(cuda::layer_backward_scratch(backward), [&](const cuda::Stream& stream) {
      cuda::layer_backward(backward, grad_affine.data(), stream);
    });
  }

  std::vector<int> levels_of(int64_t c) const {
    const int64_t n = shape_.context_size();
    CodeTable of;
    std::memcpy(&of, table.data() + c * kCodeTableWords, sizeof(of));
    std::vector<int> out;
    for (int64_t i = 0; i < n; ++i) {
      out.push_back(of.level[code[columns_ ? i * shape_.channels + c : c * n + i]]);
    }
    return out;
  }

  LayerFound found(int64_t c) const {
    LayerStats own;
    std::memcpy(&own, stats.data() + c * kLayerStats, sizeof(own));
    const auto affine = [&](int64_t i) { return grad_affine[i * shape_.channels + c]; };
    return {levels_of(c), y.get(c + beside_), grad_x.get(c + beside_),
            own.mean_in,  own.var_in,         own.mean_out,
            own.var_out,  affine(0),          affine(1),
            affine(2),    affine(3)};
  }

  // Whether nothing was written outside.
  bool intact(const Tensor& x) const {
    bool same = y.intact() && grad_x.intact();
    for (int64_t c = 0; c < beside_; ++c) {
      for (const int64_t outer : {c, x.shape().channels - 1 - c}) {
        same &= y.get(outer) == x.get(outer) && grad_x.get(outer) == x.get(outer);
      }
    }
    return same;
  }

  bool operator==(const CudaLayerRun& other) const {
    return y == other.y && grad_x == other.grad_x && code == other.code && table == other.table &&
           stats == other.stats && context == other.context && grad_affine == other.grad_affine;
  }

 private:
  int64_t beside_;
  Shape shape_;
  bool columns_ = false;
};

}  // namespace qact::core::testing
