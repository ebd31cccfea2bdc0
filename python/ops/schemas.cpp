// The operators of the package, torch.ops.qact_python. They have a namespace of their own, so that
// libqact_ops.so with its torch.ops.qact can be loaded beside them. Gradients, fake kernels and
// rules for vmap are registered in Python.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "python/ops/layer.h"
#include "python/ops/values.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

std::tuple<int64_t, int64_t, int64_t> constants() {
  return {static_cast<int64_t>(sizeof(core::CodeTable)), core::kLayerStats, core::kContextBins};
}

}  // namespace

STABLE_TORCH_LIBRARY(qact_python, m) {
  m.def(
      "layer_forward(Tensor x, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, "
      "Tensor? bias_out, float eps, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, int image_channels, int context_images, bool keep, "
      "bool track) -> (Tensor y, Tensor kept, Tensor stats, Tensor context)");
  m.def(
      "layer_backward(Tensor grad_y, Tensor? x, Tensor kept, Tensor stats, Tensor? weight_in, "
      "Tensor? bias_in, Tensor? weight_out, float eps, int levels, float bound, "
      "float positive_share, float bandwidth, int algorithm, int image_channels, "
      "int context_images) -> (Tensor grad_x, Tensor grad_affine)");
  m.def(
      "layer_track(Tensor(a!) mean_in, Tensor(b!) var_in, Tensor(c!) mean_out, "
      "Tensor(d!) var_out, Tensor(e!) context, Tensor(f!) batches, Tensor stats, Tensor batch, "
      "float? momentum, SymInt n, SymInt context_images, SymInt images) -> ()");
  m.def(
      "activation_forward(Tensor x, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, bool quantised, int density_samples, int seed, bool keep) "
      "-> (Tensor y, Tensor density)");
  m.def("quantiles(Tensor x, int levels, float bound, float positive_share) -> Tensor");
  m.def(
      "quantile_apply(Tensor x, Tensor quantiles, Tensor? scale, Tensor? shift, "
      "Tensor? out_scale, Tensor? out_shift, float bandwidth, bool quantised) -> Tensor");
  m.def(
      "quantile_apply_backward(Tensor grad_y, Tensor x, Tensor quantiles, Tensor? scale, "
      "Tensor? shift, Tensor? out_scale, float bandwidth) -> (Tensor grad_x, Tensor grad_affine)");
  m.def(
      "layer_tracked(Tensor x, Tensor quantiles, Tensor? mean_in, Tensor? var_in, "
      "Tensor? weight_in, Tensor? bias_in, Tensor? mean_out, Tensor? var_out, Tensor? weight_out, "
      "Tensor? bias_out, float eps, bool quantised, int image_channels, float bound, "
      "float positive_share, int algorithm) -> Tensor");
  m.def("context_build(Tensor x, Tensor? scale, Tensor? shift) -> Tensor");
  m.def(
      "context_blend(Tensor a, Tensor b, Tensor? batches, float? prior, float? momentum, "
      "SymInt images, SymInt n) -> Tensor");
  m.def(
      "context_quantiles(Tensor context, int levels, float bound, float positive_share) -> Tensor");
  m.def("standard_normal(Tensor(a!) row) -> ()");
  m.def("constants() -> (int, int, int)");
}

STABLE_TORCH_LIBRARY_IMPL(qact_python, CompositeExplicitAutograd, m) {
  m.impl("constants", TORCH_BOX(&constants));
}

}  // namespace qact::python
