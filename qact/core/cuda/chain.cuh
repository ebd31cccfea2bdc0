// The kernels of one call follow each other closely: the blocks of the next one take their places
// while the last blocks of this one work, and wait there for what it writes. A call's first kernel
// starts after all that came before it (launch()), so that what earlier calls wrote may be read
// without a wait. Code for GPUs before sm_90 starts one after the other.
#pragma once

#include "qact/core/mutant.h"

namespace qact::core::cuda {

// In every kernel that launch_next() starts, by all threads, before they read what the kernels
// before it wrote, and before they write.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  if (!QACT_MUTANT("cuda_wait_for_previous")) cudaGridDependencySynchronize();
#endif
}

// The next kernel's blocks may come. After the wait, if there is one.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace qact::core::cuda
