// The part of the emulated CUDA that hosts call: memory, attributes, errors. cuda_runtime.h has
// what kernels are written in, too.
#pragma once

#include <cstring>

#include "tests/core/cuda/emulator/device.h"

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaLaunchAttributeID {
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeClusterDimension,
};
struct cudaFuncAttributes {
  int ptxVersion;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    uint3 clusterDim;
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "invalid argument"; }
inline cudaError_t cudaGetDevice(int* id) {
  *id = qact::emulator::device().card.id;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = static_cast<int>(qact::emulator::device().card.shared);
  return cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  qact::emulator::device().allow_shared(kernel, static_cast<size_t>(bytes));
  return cudaSuccess;
}
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*)()) {
  attributes->ptxVersion = qact::emulator::device().card.ptx;
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
  qact::emulator::device().synchronize();
  std::memset(at, value, bytes);
  return cudaSuccess;
}
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
  qact::emulator::device().synchronize();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  qact::emulator::device().synchronize();
  return cudaSuccess;
}
