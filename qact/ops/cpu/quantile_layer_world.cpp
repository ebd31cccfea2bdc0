#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "qact/core/world.h"
#include "qact/ops/cpu/affine.h"
#include "qact/ops/process_group.h"
#include "qact/ops/world_operands.h"

namespace qact::ops {
namespace {

WorldForwardHalves forward(const WorldHalves& x, const LayerAffine& affine,
                           const LayerOptions& options, bool keep, std::string_view group) {
  core::LayerForward call;
  call.quantile = check_world_layer(x, affine, options);
  call.eps = options.eps;
  const WorldForwardOperands operands(x.others, affine_of_others(x, affine), options, keep);
  operands.fill(call);
  const ProcessGroup ranks = process_group("quantile_layer_world", group);
  const auto pass = core::world_forward(call, rank_in(ranks), cpu_execution());
  LayerResult images;
  while (!pass->done()) {
    pass->count();
    PendingReduction round = start_all_reduce(ranks, pass->round());
    if (!images.y.defined()) images = images_forward(x, affine, options, keep);
    round.wait();
    pass->next();
  }
  pass->write();
  return {operands.take(pass->values()), std::move(images)};
}

WorldBackwardHalves backward(const WorldHalves& grad_y, const WorldLayerKept& kept,
                             const LayerAffine& affine, const LayerOptions& options,
                             std::string_view group) {
  core::LayerBackward call;
  call.quantile = check_world_layer_backward(grad_y, kept, affine, options);
  call.eps = options.eps;
  const at::Tensor& others = grad_y.others;
  const WorldBackwardOperands operands(others, kept, affine_of_others(grad_y, affine));
  operands.fill(call);
  const int64_t channels = others.size(1);
  std::vector<double> gradients(4 * channels), own(core::kWorldSums * channels);
  call.grad_affine = gradients.data();

  const core::Execution execution = cpu_execution();
  core::world_backward_sums(call, own.data(), execution);
  std::vector<double> all = own;
  PendingReduction sums = start_all_reduce(
      process_group("quantile_layer_world_backward", group),
      {{core::Reduction::Kind::sum_f64, all.data(), static_cast<int64_t>(all.size())}});
  const auto [grad_images, affine_images] = images_backward(grad_y, kept, affine, options);
  sums.wait();
  core::world_backward_write(call, static_cast<double>(kept.values.item<int64_t>()), own.data(),
                             all.data(), execution);
  return {{operands.take(), grad_images},
          at::cat({affine_images, affine_rows(gradients, others)}, 1)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<forward>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<backward>);
}

}  // namespace qact::ops
