// The operands of the fused layer and of given quantiles as core takes them, on any device,
// and the tensors that must outlive the call.
#pragma once

#include <ATen/ATen.h>

#include "qact/core/context.h"
#include "qact/core/quantile.h"
#include "qact/ops/flatten.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {

// The fused layer's vectors, and what its forward pass leaves beside y.
struct LayerOperands {
  FlatVector weight_in, bias_in, weight_out, bias_out;
  at::Tensor code, table, stats, context;
  at::Tensor scratch;  // for codes that nobody keeps, on the CPU

  LayerOperands(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                bool keep)
      : weight_in(flatten_vector(affine.weight_in)),
        bias_in(flatten_vector(affine.bias_in)),
        weight_out(flatten_vector(affine.weight_out)),
        bias_out(flatten_vector(affine.bias_out)) {
    const KeptSizes kept = kept_sizes(x, options.scope, keep);
    const auto size = [](const c10::SymInt& n) { return n.expect_int(); };
    code = empty_beside(x, {size(kept.code_rows), size(kept.code_columns)}, at::kByte);
    table = empty_beside(x, {size(kept.table_rows), size(kept.table_columns)}, at::kInt);
    if (!keep && x.is_cpu()) scratch = empty_beside(x, {x.numel()}, at::kByte);
    const int64_t rows = x.size(1) - options.scope.image_channels;
    stats = empty_beside(x, {rows, core::kLayerStats}, at::kDouble);
    context = options.track ? empty_beside(x, {rows, core::kContextBins}, at::kLong)
                            : empty_beside(x, {0}, at::kLong);
  }

  void fill(core::LayerForward& call) {
    call.weight_in = weight_in.vector;
    call.bias_in = bias_in.vector;
    call.weight_out = weight_out.vector;
    call.bias_out = bias_out.vector;
    const at::Tensor& codes = scratch.defined() ? scratch : code;
    call.code = codes.numel() > 0 ? codes.data_ptr<uint8_t>() : nullptr;
    call.table = table.numel() > 0 ? table.data_ptr<int32_t>() : nullptr;
    call.stats = stats.data_ptr<double>();
    call.context = context.numel() > 0 ? context.data_ptr<int64_t>() : nullptr;
  }
};

// What the fused layer's backward pass was handed by its forward pass.
struct LayerSaved {
  at::Tensor code, table;
  FlatVector weight_in, bias_in, weight_out;

  LayerSaved(const LayerKept& kept, const LayerAffine& affine)
      : code(kept.code.contiguous()),
        table(kept.table.contiguous()),
        weight_in(flatten_vector(affine.weight_in)),
        bias_in(flatten_vector(affine.bias_in)),
        weight_out(flatten_vector(affine.weight_out)) {}

  void fill(core::LayerBackward& call) const {
    call.weight_in = weight_in.vector;
    call.bias_in = bias_in.vector;
    call.weight_out = weight_out.vector;
    call.code = code.const_data_ptr<uint8_t>();
    call.table = table.numel() > 0 ? table.const_data_ptr<int32_t>() : nullptr;
  }
};

// What both directions of quantile_apply hand to core.
struct ApplyOperands {
  FlatTensor x;
  at::Tensor quantiles;
  FlatVector scale, shift, out_scale;

  ApplyOperands(FlatTensor flat, const at::Tensor& q, const MaybeTensor& a, const MaybeTensor& b,
                const MaybeTensor& c)
      : x(std::move(flat)),
        quantiles(q.to(at::kDouble).contiguous()),
        scale(flatten_vector(a)),
        shift(flatten_vector(b)),
        out_scale(flatten_vector(c)) {}

  template <class Call>
  void fill(Call& call) const {
    call.levels = static_cast<int>(quantiles.size(1));
    call.shape = x.shape;
    call.x = x.view;
    call.scale = scale.vector;
    call.shift = shift.vector;
    call.out_scale = out_scale.vector;
    call.quantiles = quantiles.const_data_ptr<double>();
  }
};

}  // namespace qact::ops
