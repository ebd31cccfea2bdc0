// The kernels of one call follow each other closely: the blocks of the next one take their places
// while the last blocks of this one work, and wait there before they touch the device's memory.
// GPUs before sm_90 start them one after the other.
#pragma once

namespace qact::core::cuda {

// First in a kernel that launch_next() starts: what the kernel before it wrote can be read.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// After that: the next kernel's blocks may come.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace qact::core::cuda
