// From a call in plain C++ to kernels: types, vector widths, layouts and parts of channels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "qact/core/cuda/numbers.cuh"
#include "qact/core/cuda/scope.h"
#include "qact/core/cuda/tensor.cuh"
#include "qact/core/mutant.h"
#include "qact/core/view.h"

namespace qact::core::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or the next check of somebody else's launch would meet it
  throw std::runtime_error(std::string("[") + what + "] CUDA says: " + cudaGetErrorString(error));
}

template <class T>
struct Type {
  using Value = T;
};

template <class Run>
void with_type(DType dtype, const Run& run) {
  switch (dtype) {
    case DType::f32:
      return run(Type<float>{});
    case DType::bf16:
      return run(Type<__nv_bfloat16>{});
    case DType::f16:
      return run(Type<__half>{});
    default:
      throw std::invalid_argument(
          "[qact] expected float32, bfloat16 or float16 on CUDA, got float64");
  }
}

// Raises a kernel's limit of dynamic shared memory on the current device, and never lowers it:
// another thread may be about to start the same kernel with more.
inline void allow_shared(const char* what, const void* kernel, size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, size_t> allowed;
  int device = 0;
  check(cudaGetDevice(&device), what);
  const std::lock_guard lock(mutex);
  size_t& limit = allowed[{kernel, device}];
  if (bytes <= limit) return;
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), what);
  if (bytes > static_cast<size_t>(most)) {
    throw std::runtime_error(
        std::string("[") + what + "] expected a GPU with " + std::to_string((bytes + 1023) / 1024) +
        " KiB of shared memory for a block, got one with " + std::to_string(most / 1024));
  }
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        what);
  limit = bytes;
}

// What a launch must check first. The rows of a grid are channels, or parts of them.
inline void prepare(const char* what, const void* kernel, dim3 grid, size_t shared) {
  if (grid.y > 65535) {
    throw std::invalid_argument(std::string("[") + what +
                                "] expected at most 65535 channels, or parts of them, got " +
                                std::to_string(grid.y));
  }
  if (shared > 48 * 1024) allow_shared(what, kernel, shared);
  set_device_mutant();
}

template <class = void>  // since it stands in a header
__global__ void probe() {}

// Whether kernels run as code for sm_90 on the current device, with the waits of chain.cuh and the
// clusters of cluster.cuh. Machine code may come from older PTX.
inline bool runs_sm90(const char* what) {
  constexpr int kDevices = 64;
  enum { kUnknown, kNo, kYes };
  static std::array<std::atomic<int>, kDevices> known{};
  int device = 0;
  check(cudaGetDevice(&device), what);
  int answer = device < kDevices ? known[device].load() : kUnknown;
  if (answer == kUnknown) {
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, probe<>), what);
    answer = attributes.ptxVersion >= 90 ? kYes : kNo;
    if (device < kDevices) known[device] = answer;
  }
  return answer == kYes;
}

// Starts a kernel, whose dynamic shared memory may exceed the default limit, in a way that an
// attribute tells, if there is one.
template <class Kernel, class... Arguments>
void launch_with(cudaLaunchAttribute* attribute, const char* what, Kernel kernel, dim3 grid,
                 int threads, size_t shared, cudaStream_t stream, const Arguments&... arguments) {
  prepare(what, reinterpret_cast<const void*>(kernel), grid, shared);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = attribute != nullptr;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

template <class Kernel, class... Arguments>
void launch(const char* what, Kernel kernel, dim3 grid, int threads, size_t shared,
            cudaStream_t stream, const Arguments&... arguments) {
  launch_with(nullptr, what, kernel, grid, threads, shared, stream, arguments...);
}

// Starts a kernel that calls wait_for_previous(), after one of the same call that calls
// let_next_start().
template <class Kernel, class... Arguments>
void launch_next(const char* what, Kernel kernel, dim3 grid, int threads, size_t shared,
                 cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  launch_with(runs_sm90(what) ? &early : nullptr, what, kernel, grid, threads, shared, stream,
              arguments...);
}

// Starts a kernel whose blocks form clusters of so many; 1: none.
template <class Kernel, class... Arguments>
void launch_clusters(const char* what, Kernel kernel, unsigned clusters, int blocks, int threads,
                     size_t shared, cudaStream_t stream, const Arguments&... arguments) {
  const auto size = static_cast<unsigned>(blocks);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {size, 1, 1};
  launch_with(blocks > 1 ? &cluster : nullptr, what, kernel, dim3(clusters * size), threads, shared,
              stream, arguments...);
}

enum class Order { rows, columns, neither };

inline Order order_of(const Shape& shape, const View& view) {
  if (shape.spatial > 1 && view.spatial_stride == 1) return Order::rows;
  const bool even = shape.spatial == 1 || view.batch_stride == shape.spatial * view.spatial_stride;
  return view.channel_stride == 1 && even ? Order::columns : Order::neither;
}
inline Order order_of(const Contexts& contexts, const View& view) {
  return order_of(contexts.shape, view);
}

inline Divider channels_of(const Contexts& contexts) {
  return Divider(static_cast<uint32_t>(contexts.shape.channels));
}

inline Starts starts_of(const Contexts& contexts, int64_t channel_stride, int64_t set_stride) {
  return {channel_stride, set_stride, channels_of(contexts)};
}
inline Starts starts_of(const Contexts& contexts, const View& view) {
  return starts_of(contexts, view.channel_stride, contexts.shape.batch * view.batch_stride);
}

inline Layout layout_of(const Contexts& contexts, const View& view) {
  Layout out;
  out.batch_stride = view.batch_stride;
  out.row_stride = contexts.shape.spatial == 1 ? view.batch_stride : view.spatial_stride;
  out.start = starts_of(contexts, view);
  return out;
}

template <class T>
Values<T> values_of(const Contexts& contexts, const View& view) {
  return {static_cast<const T*>(view.data),
          static_cast<uint32_t>(contexts.size()),
          view.batch_stride,
          view.spatial_stride,
          Divider(static_cast<uint32_t>(contexts.shape.spatial)),
          starts_of(contexts, view)};
}

template <class T>
Results<T> results_of(const Contexts& contexts, const View& view) {
  return {static_cast<T*>(view.data), view.batch_stride, view.spatial_stride,
          Divider(static_cast<uint32_t>(contexts.shape.spatial)), starts_of(contexts, view)};
}

// Codes lie in the order of a tensor, set by set: in rows, a context's side by side; in columns,
// those of a place.
inline Layout code_layout(const Contexts& contexts, Order order) {
  const int64_t n = contexts.size(), channels = contexts.shape.channels;
  const bool columns = order == Order::columns;
  return {contexts.shape.spatial, channels, starts_of(contexts, columns ? 1 : n, channels * n)};
}
inline Results<uint8_t> code_results(const Contexts& contexts, Order order, uint8_t* code) {
  const bool columns = order == Order::columns;
  const int64_t spatial = contexts.shape.spatial, channels = contexts.shape.channels;
  return {code, columns ? spatial * channels : spatial, columns ? channels : 1,
          Divider(static_cast<uint32_t>(spatial)), code_layout(contexts, order).start};
}

// Whether packs of `size` values can be loaded and stored.
inline bool packs(const Contexts& contexts, const View& view, int size, int bytes) {
  const Shape& shape = contexts.shape;
  const bool columns = order_of(shape, view) == Order::columns;
  const int64_t run = columns ? shape.channels : shape.spatial;
  const auto even = [&](int64_t stride, int64_t steps) { return stride % size == 0 || steps == 1; };
  const bool strides =
      columns ? even(layout_of(shape, view).row_stride, shape.context_size())
              : even(view.channel_stride, shape.channels) && even(view.batch_stride, shape.batch);
  return run % size == 0 && strides && even(shape.batch * view.batch_stride, contexts.sets) &&
         reinterpret_cast<uintptr_t>(view.data) % (static_cast<size_t>(size) * bytes) == 0;
}

// Parts of a channel, so that about `blocks` run in all, or whole rounds of so many; the shape
// alone decides. No part holds more values than a 16-bit count can tell.
inline Extent extent_of(const Contexts& contexts, Order order, int size, int64_t groups,
                        int64_t blocks, int64_t least) {
  constexpr int64_t kMost = 65024;
  const Shape& shape = contexts.shape;
  const int64_t n = shape.context_size();
  const int64_t fewest = (n + kMost - 1) / kMost;
  const int64_t rounds = (fewest * groups + blocks - 1) / blocks;
  const int64_t wanted = std::clamp<int64_t>(rounds * blocks / groups, 1, (n + least - 1) / least);
  const int64_t parts = std::max(wanted, fewest);
  const int64_t units = order == Order::rows ? n / size : n;
  Extent out;
  out.n = static_cast<uint32_t>(n);
  out.channels = static_cast<uint32_t>(contexts.count());
  out.spatial = static_cast<uint32_t>(shape.spatial);
  out.per_part = static_cast<uint32_t>((units + parts - 1) / parts);
  const int64_t rest = QACT_MUTANT("cuda_parts_tail") ? 0 : out.per_part - 1;
  out.parts = static_cast<uint32_t>((units + rest) / out.per_part);
  if (order == Order::rows) out.run = Divider(static_cast<uint32_t>(shape.spatial / size));
  return out;
}

}  // namespace qact::core::cuda
