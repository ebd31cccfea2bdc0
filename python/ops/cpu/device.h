// What the operators do on the CPU alone: layer_operators.h and values_operators.h have the rest.
#pragma once

#include <vector>

#include "python/ops/cpu/affine.h"
#include "python/ops/execution.h"
#include "python/ops/layer.h"
#include "qact/core/context.h"

namespace qact::python {

struct Cpu {
  static constexpr bool kWritesCodes = true;  // whether they are kept or not
  struct Guard {
    explicit Guard(const Tensor&) {}
  };
  struct Result : ResultTensor {
    explicit Result(const Tensor& like) : ResultTensor(like) {}
    Result(const Tensor& like, const FlatTensor&) : ResultTensor(like) {}
  };

  static void check(const char*, const Tensor&) {}
  static FlatTensor flatten(const Tensor& x) { return flatten_spatial(x); }
  static FlatTensor flatten_alike(const Tensor& x, const FlatTensor&) { return flatten_spatial(x); }
  static Tensor running(const Tensor& vector) { return vector; }
  static int64_t batches(const Tensor& count) {
    return *static_cast<const int64_t*>(count.const_data_ptr());
  }

  static void run(const core::LayerForward& call, const Tensor&) {
    core::layer_forward(call, cpu_execution());
  }
  static Tensor run(core::LayerBackward& call, const Tensor& x) {
    std::vector<double> affine(4 * x.size(1));
    call.grad_affine = affine.data();
    core::layer_backward(call, cpu_execution());
    return affine_rows(affine, x);
  }
  static void run(const core::LayerTrack& call, const Tensor&) {
    core::layer_track(call, cpu_execution());
  }
  static void run(const core::QuantileApply& call, const Tensor&) {
    core::quantile_apply(call, cpu_execution());
  }
  static Tensor run(core::QuantileApplyBackward& call, const Tensor& x) {
    std::vector<double> affine(4 * x.size(1));
    call.grad_affine = affine.data();
    core::quantile_apply_backward(call, cpu_execution());
    return affine_rows(affine, x);
  }
  static void run(const core::ContextBuild& call, const Tensor&) {
    core::context_build(call, cpu_execution());
  }
  static void run(const core::ContextBlend& call, const Tensor&) {
    core::context_blend(call, cpu_execution());
  }
  static void context_quantiles(const int64_t* counts, const core::Quantile& quantile,
                                double* found, const Tensor& context) {
    constexpr int64_t kChannelsPerThread = 32;
    cpu_execution().run(context.size(0), kChannelsPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        core::context_quantiles(
            core::ConstContextRow(counts + c * core::kContextBins, core::kContextBins), quantile,
            found + c * quantile.levels);
      }
    });
  }
};

}  // namespace qact::python
