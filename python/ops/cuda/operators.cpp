// The operators on CUDA: those that all devices share, and what is its own.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "python/ops/cuda/device.h"
#include "python/ops/layer_operators.h"
#include "python/ops/values_operators.h"

namespace qact::python {
namespace {

// Levels as one byte, quantised, without samples: what the kernels take. The package's Python half
// asks for nothing else (python/qact/_cuda.py).
std::tuple<Tensor, Tensor> activation_kernel(const Tensor& x, int64_t levels, double bound,
                                             double positive_share, double bandwidth,
                                             int64_t algorithm, bool keep) {
  constexpr const char* kOp = "quantile_activation";
  core::ActivationForward call;
  call.quantile = check_activation(
      x, {levels, bound, positive_share, bandwidth, algorithm, /*quantised=*/true, 0, 0});
  QACT_EXPECT(levels <= kMostLayerLevels, "[", kOp, "] expected levels in 2..", kMostLayerLevels,
              " for a kernel, got ", levels);
  check_computed(kOp, x);
  const Cuda::Guard guard(x);
  const FlatTensor in = flatten_readable(x);
  CudaResult y(x, in);
  std::optional<CudaResult> density;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  if (keep) call.density = density.emplace(x, in).view();
  const CudaStream on = cuda_stream(x, core::cuda::activation_forward_scratch(call));
  core::cuda::activation_forward(call, on.stream);
  return {y.take(), density ? density->take() : empty_beside(x, {0}, type_of(x))};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(qact_python, m) {
  m.def(
      "activation_kernel(Tensor x, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, bool keep) -> (Tensor y, Tensor density)");
}

STABLE_TORCH_LIBRARY_IMPL(qact_python, CUDA, m) {
  register_layer<Cuda>(m);
  register_values<Cuda>(m);
  m.impl("activation_kernel", TORCH_BOX(&activation_kernel));
}

}  // namespace qact::python
