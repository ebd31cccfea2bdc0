// There is one stream, which runs everything in its order.
#pragma once

#include <c10/core/Device.h>
#include <cuda_runtime_api.h>

namespace c10::cuda {
struct CUDAStream {
  cudaStream_t stream() const { return nullptr; }
  void synchronize() const { cudaStreamSynchronize(nullptr); }
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1) { return {}; }
}  // namespace c10::cuda
