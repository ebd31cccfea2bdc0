#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {
using CUDAGuard = DeviceGuard;
struct CUDAStreamGuard {
  explicit CUDAStreamGuard(CUDAStream) {}
  ~CUDAStreamGuard() {}
};
}  // namespace c10::cuda
