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
#include "qact/core/cuda/scope.h"
#include "tests/core/cases.h"
#include "tests/core/cuda/device_memory.h"
#include "tests/core/layer_check.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {

// The kernels on contexts of the whole batch, or of several sets of images of it, whatever would be
// kept of them. x, its gradient and the results lie in the inner channels of tensors that are wider
// by so many on either side.
struct CudaLayerRun {
  Tensor y, grad_x;
  DeviceArray<uint8_t> code;
  DeviceArray<int32_t> table;
  DeviceArray<double> stats;
  DeviceArray<int64_t> context;
  DeviceArray<float> grad_affine;

  CudaLayerRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
               int64_t beside = 0, double eps = 1e-5, int64_t sets = 1)
      : y(x), grad_x(x), beside_(beside), shape_(x.shape()), contexts_(sets) {
    const int64_t n = x.shape().batch / sets * x.shape().spatial;
    codes_are_levels_ = n <= kExactLimit && quantile.exact_for(n);  // a warp ranks them
    shape_.channels -= 2 * beside;
    shape_.batch /= sets;
    contexts_ *= shape_.channels;
    code.resize(contexts_ * shape_.context_size());
    table.resize(contexts_ * kCodeTableWords);
    stats.resize(contexts_ * kLayerStats);
    context.resize(contexts_ * kContextBins);
    grad_affine.resize(contexts_ * 4);
    const View in = x.view().from(0, beside);
    columns_ = shape_.spatial == 1 || in.spatial_stride != 1;
    cuda::ForwardPart forward;
    forward.sets = sets;
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
    run_with_scratch(cuda::forward_part_scratch(forward),
                     [&](const cuda::Stream& stream) { cuda::forward_part(forward, stream); });
    cuda::BackwardPart backward;
    backward.sets = sets;
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
    run_with_scratch(cuda::backward_part_scratch(backward), [&](const cuda::Stream& stream) {
      cuda::backward_part(backward, {grad_affine.data(), contexts_}, stream);
    });
  }

  // The values of the k-th context, which is of channel k % channels.
  std::vector<double> context_of(const Tensor& tensor, int64_t k) const {
    const std::vector<double> all = tensor.get(k % shape_.channels + beside_);
    const auto first = all.begin() + k / shape_.channels * shape_.context_size();
    return {first, first + shape_.context_size()};
  }

  std::vector<int> levels_of(int64_t k) const {
    const int64_t n = shape_.context_size(), channels = shape_.channels;
    CodeTable of;
    std::memcpy(&of, table.data() + k * kCodeTableWords, sizeof(of));
    const int64_t first = columns_ ? k / channels * channels * n + k % channels : k * n;
    std::vector<int> out;
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t own = code[first + i * (columns_ ? channels : 1)];
      out.push_back(codes_are_levels_ ? own : of.level[own]);
    }
    return out;
  }

  LayerFound found(int64_t k) const {
    LayerStats own;
    std::memcpy(&own, stats.data() + k * kLayerStats, sizeof(own));
    const auto affine = [&](int64_t i) { return grad_affine[i * contexts_ + k]; };
    return {levels_of(k), context_of(y, k), context_of(grad_x, k),
            own.mean_in,  own.var_in,       own.mean_out,
            own.var_out,  affine(0),        affine(1),
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
  Shape shape_;  // of one set
  int64_t contexts_;
  bool columns_ = false, codes_are_levels_ = false;
};

}  // namespace qact::core::testing
