// How tensors are handed to core: plain pointers, sizes and strides.
#pragma once

#include <cstdint>
#include <functional>

#include "qact/core/host_device.h"

namespace qact::core {

enum class DType { f32, f64, bf16, f16 };

// In bytes.
inline int64_t size_of(DType dtype) {
  return dtype == DType::f64 ? 8 : dtype == DType::f32 ? 4 : 2;
}

// A tensor of any number of dimensions, seen as batch x channels x spatial. The
// context of a channel is all of its batch * spatial values.
struct Shape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t spatial = 1;

  int64_t context_size() const { return batch * spatial; }
};

// Where the values of a Shape lie. Strides count elements.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t batch_stride = 0;
  int64_t channel_stride = 0;
  int64_t spatial_stride = 1;

  explicit operator bool() const { return data != nullptr; }

  // Of the first image and the first channel.
  void* data_at(int64_t place) const {
    return static_cast<char*>(data) + size_of(dtype) * place * spatial_stride;
  }

  // The same from that image and that channel on.
  View from(int64_t image, int64_t channel) const {
    View out = *this;
    if (data) {
      out.data = static_cast<char*>(data) +
                 size_of(dtype) * (image * batch_stride + channel * channel_stride);
    }
    return out;
  }
};

// One number per channel, float or double; an absent one stands for its default.
struct ChannelVector {
  const void* data = nullptr;
  bool is_double = false;

  ChannelVector from(int64_t channel) const {
    if (!data) return *this;
    return {static_cast<const char*>(data) + channel * (is_double ? 8 : 4), is_double};
  }

  QACT_HD double at(int64_t channel, double absent) const {
    if (!data) return absent;
    return is_double ? static_cast<const double*>(data)[channel]
                     : static_cast<const float*>(data)[channel];
  }
};

enum class Simd { scalar, avx2, avx512 };

// A parallel loop over [0, count): calls body(begin, end) on disjoint ranges that
// hold at least `grain` items where possible. Core starts no threads of its own.
using ParallelFor = std::function<void(int64_t count, int64_t grain,
                                       const std::function<void(int64_t, int64_t)>& body)>;

struct Execution {
  ParallelFor parallel;  // empty: a plain loop
  Simd simd = Simd::scalar;

  void run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const {
    if (parallel) {
      parallel(count, grain, body);
    } else if (count > 0) {
      body(0, count);
    }
  }
};

}  // namespace qact::core
