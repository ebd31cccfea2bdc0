// In a build without CUDA kernels: tensors on a GPU are refused by name, not by accident.
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace qact::ops {
namespace {

void missing(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK(false, "[", op.operator_name().name,
              "] expected tensors on the CPU, got some on CUDA: this build of qact has no CUDA "
              "kernels. Configure it with the CUDA toolkit's nvcc on the PATH and a CUDA build of "
              "torch, or move the tensors to the CPU.");
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  for (const char* name :
       {"_quantile_activation_forward", "_quantile_activation_backward", "quantiles",
        "_quantile_layer_forward", "_quantile_layer_backward", "quantile_apply",
        "_quantile_apply_backward", "context_build", "context_blend", "context_quantiles",
        "_layer_track", "_quantile_layer_world_forward", "_quantile_layer_world_backward"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&missing>());
  }
}

}  // namespace qact::ops
