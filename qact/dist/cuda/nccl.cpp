#include "qact/dist/nccl.h"

// Without nccl.h, which the package nvidia-nccl has, CUDA tensors go over Gloo.
#if __has_include(<nccl.h>)
#define USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace qact::dist {

bool has_nccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

c10::intrusive_ptr<c10d::Backend> make_nccl(
    [[maybe_unused]] const c10::intrusive_ptr<c10d::Store>& store, [[maybe_unused]] int rank,
    [[maybe_unused]] int size) {
#ifdef USE_C10D_NCCL
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size);
#else
  return {};
#endif
}

}  // namespace qact::dist
