#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/world.h"
#include "qact/ops/cpu/affine.h"
#include "qact/ops/process_group.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::ops {
namespace {

WorldLayerForward forward(const at::Tensor& x, const LayerAffine& affine,
                          const LayerOptions& options, bool keep, std::string_view group) {
  core::LayerForward call;
  call.quantile = check_world_layer(x, affine, options);
  call.eps = options.eps;
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor y(x);
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  const FlatVector weight_in = flatten_vector(affine.weight_in);
  const FlatVector bias_in = flatten_vector(affine.bias_in);
  const FlatVector weight_out = flatten_vector(affine.weight_out);
  const FlatVector bias_out = flatten_vector(affine.bias_out);
  call.weight_in = weight_in.vector;
  call.bias_in = bias_in.vector;
  call.weight_out = weight_out.vector;
  call.bias_out = bias_out.vector;
  const int64_t rows = x.size(1), columns = x.numel() / rows;
  const at::Tensor code = empty_beside(x, {rows, columns}, at::kByte);
  const at::Tensor table = empty_beside(x, {keep ? rows : 0, core::kCodeTableWords}, at::kInt);
  const at::Tensor stats = empty_beside(x, {rows, core::kLayerStats}, at::kDouble);
  const at::Tensor context = options.track ? empty_beside(x, {rows, core::kContextBins}, at::kLong)
                                           : empty_beside(x, {0}, at::kLong);
  call.code = code.data_ptr<uint8_t>();
  call.table = keep ? table.data_ptr<int32_t>() : nullptr;
  call.stats = stats.data_ptr<double>();
  call.context = options.track ? context.data_ptr<int64_t>() : nullptr;

  const ProcessGroup ranks = process_group("quantile_layer_world", group);
  const auto pass = core::world_forward(call, rank_in(ranks), cpu_execution());
  while (!pass->done()) {
    pass->count();
    all_reduce(ranks, pass->round());
    pass->next();
  }
  pass->write();
  const at::Tensor values = at::scalar_tensor(pass->values(), at::kLong);
  return {{y.take(), stats, context, values},
          {keep ? code : empty_beside(x, {0, columns}, at::kByte), table, values}};
}

std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& grad_y, const WorldLayerKept& kept,
                                            const LayerAffine& affine, const LayerOptions& options,
                                            std::string_view group) {
  core::LayerBackward call;
  call.quantile = check_world_layer_backward(grad_y, kept, affine, options);
  call.eps = options.eps;
  const FlatTensor grad = flatten_spatial(grad_y);
  const ResultTensor grad_x(grad_y);
  call.shape = grad.shape;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  const FlatVector weight_in = flatten_vector(affine.weight_in);
  const FlatVector weight_out = flatten_vector(affine.weight_out);
  call.weight_in = weight_in.vector;
  call.weight_out = weight_out.vector;
  const at::Tensor code = kept.code.contiguous(), table = kept.table.contiguous();
  call.code = code.const_data_ptr<uint8_t>();
  call.table = table.const_data_ptr<int32_t>();
  std::vector<double> gradients(4 * grad_y.size(1)), own(core::kWorldSums * grad_y.size(1));
  call.grad_affine = gradients.data();

  const core::Execution execution = cpu_execution();
  core::world_backward_sums(call, own.data(), execution);
  std::vector<double> all = own;
  all_reduce(process_group("quantile_layer_world_backward", group),
             {core::Round::Kind::sum_f64, all.data(), static_cast<int64_t>(all.size())});
  core::world_backward_write(call, static_cast<double>(kept.values.item<int64_t>()), own.data(),
                             all.data(), execution);
  return {grad_x.take(), affine_rows(gradients, grad_y)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<forward>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<backward>);
}

}  // namespace qact::ops
