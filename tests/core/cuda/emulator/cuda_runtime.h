// As much of CUDA as the kernels of qact/core/cuda need, run by the CPU: their sources are compiled
// as they are, with this header in the place of the toolkit's.
//
// It promises that
//   - barriers, warp intrinsics, atomics, clusters and programmatic dependent launch do what CUDA's
//     do, in every order of threads that device().schedule asks for. Results that depend on it
//     show a missing barrier;
//   - threads that wait for each other at different places, or for ever, are an error that names
//     the lines;
//   - shared memory starts as NaN in every block, and is not written past its dynamic end;
//   - the number and the kind of all launches are known afterwards (device().launches).
// It does not promise
//   - a memory model: every write is seen at once by all, and threads change only where they wait
//     or, in a shuffled schedule, at atomics and loads;
//   - CUDA's rounding where CUDA has its own: a multiplication and an addition are never one
//     instruction here, and exp and rsqrt are the C library's;
//   - anything about time, registers, or what nvcc makes of the sources.
// Masks of warp intrinsics must name all lanes, and blocks have one dimension.
#pragma once

#include <type_traits>
#include <utility>

#include "tests/core/cuda/emulator/cuda_runtime_api.h"
#include "tests/core/cuda/emulator/intrinsics.h"

#define __host__
#define __device__
#define __global__
#define __constant__
#define __grid_constant__
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ constinit thread_local
#define __CUDA_ARCH__ 900

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const Arguments&... arguments) {
  qact::emulator::Grid grid;
  grid.blocks = config->gridDim;
  grid.threads = config->blockDim;
  grid.shared = config->dynamicSmemBytes;
  grid.kernel = [kernel, ... given = static_cast<std::remove_const_t<Parameters>>(arguments)] {
    kernel(given...);
  };
  bool early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      grid.cluster = attribute.val.clusterDim.x;
    } else {
      early = attribute.val.programmaticStreamSerializationAllowed;
    }
  }
  const std::string wrong = qact::emulator::device().launch(
      std::move(grid), reinterpret_cast<const void*>(kernel), early);
  return wrong.empty() ? cudaSuccess : cudaErrorInvalidValue;
}
