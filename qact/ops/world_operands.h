// What contexts over several processes need of an operator's tensors, on any device: one place that
// makes the results, flattens the arguments and fills core's calls.
#pragma once

#include <ATen/ATen.h>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/quantile.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::ops {

class WorldForwardOperands {
 public:
  WorldForwardOperands(const at::Tensor& x, const LayerAffine& affine, const LayerOptions& options,
                       bool keep)
      : keep_(keep),
        in_(flatten_spatial(x)),
        y_(x),
        weight_in_(flatten_vector(affine.weight_in)),
        bias_in_(flatten_vector(affine.bias_in)),
        weight_out_(flatten_vector(affine.weight_out)),
        bias_out_(flatten_vector(affine.bias_out)) {
    const int64_t rows = x.size(1), columns = x.numel() / rows;
    code_ = empty_beside(x, {rows, columns}, at::kByte);
    table_ = empty_beside(x, {keep ? rows : 0, core::kCodeTableWords}, at::kInt);
    stats_ = empty_beside(x, {rows, core::kLayerStats}, at::kDouble);
    context_ = options.track ? empty_beside(x, {rows, core::kContextBins}, at::kLong)
                             : empty_beside(x, {0}, at::kLong);
  }

  void fill(core::LayerForward& call) const {
    call.shape = in_.shape;
    call.x = in_.view;
    call.y = y_.view();
    call.weight_in = weight_in_.vector;
    call.bias_in = bias_in_.vector;
    call.weight_out = weight_out_.vector;
    call.bias_out = bias_out_.vector;
    call.code = code_.data_ptr<uint8_t>();
    call.table = keep_ ? table_.data_ptr<int32_t>() : nullptr;
    call.stats = stats_.data_ptr<double>();
    call.context = context_.numel() > 0 ? context_.data_ptr<int64_t>() : nullptr;
  }

  // `count`: values of a channel over all ranks.
  WorldLayerForward take(int64_t count) const {
    const at::Tensor values = at::scalar_tensor(count, stats_.options().dtype(at::kLong));
    const at::Tensor code = keep_ ? code_ : empty_beside(code_, {0, code_.size(1)}, at::kByte);
    return {{y_.take(), stats_, context_, values}, {code, table_, values}};
  }

 private:
  bool keep_;
  FlatTensor in_;
  ResultTensor y_;
  FlatVector weight_in_, bias_in_, weight_out_, bias_out_;
  at::Tensor code_, table_, stats_, context_;
};

class WorldBackwardOperands {
 public:
  WorldBackwardOperands(const at::Tensor& grad_y, const WorldLayerKept& kept,
                        const LayerAffine& affine)
      : grad_(flatten_spatial(grad_y)),
        grad_x_(grad_y),
        weight_in_(flatten_vector(affine.weight_in)),
        weight_out_(flatten_vector(affine.weight_out)),
        code_(kept.code.contiguous()),
        table_(kept.table.contiguous()) {}

  void fill(core::LayerBackward& call) const {
    call.shape = grad_.shape;
    call.grad_y = grad_.view;
    call.grad_x = grad_x_.view();
    call.weight_in = weight_in_.vector;
    call.weight_out = weight_out_.vector;
    call.code = code_.const_data_ptr<uint8_t>();
    call.table = table_.const_data_ptr<int32_t>();
  }

  at::Tensor take() const { return grad_x_.take(); }

 private:
  FlatTensor grad_;
  ResultTensor grad_x_;
  FlatVector weight_in_, weight_out_;
  at::Tensor code_, table_;
};

}  // namespace qact::ops
