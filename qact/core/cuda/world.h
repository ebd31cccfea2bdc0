// The layer over several ranks (core/world.h) whose values lie on a GPU: what is counted and
// written there. As in cuda.h, nothing is allocated or waited for but by what the caller lends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "qact/core/cuda/cuda.h"
#include "qact/core/world_device.h"

namespace qact::core::cuda {

// Copies follow what the stream was given before. Those to the host wait for it; of those to the
// device the source may change once they return.
struct WorldMemory {
  // Aligned to 16; until the stream is through with this round, or with the last pass.
  std::function<void*(size_t bytes)> allocate;
  std::function<void(void* to, const void* from, size_t bytes)> to_host, to_device;
};

// For world_forward(). Any strides; float32, bfloat16 and float16.
std::unique_ptr<WorldDevice> world_device(const LayerForward& call, const Stream& stream,
                                          const WorldMemory& memory);

// As in core/world.h, with everything on the device; sums are [channels][kWorldSums], the affine
// gradients [4][channels].
size_t world_backward_scratch(const LayerBackward& call);
void world_backward_sums(const LayerBackward& call, double* sums, const Stream& stream);
void world_backward_write(const LayerBackward& call, const int64_t* values, const double* own,
                          const double* all, float* grad_affine, const Stream& stream);

}  // namespace qact::core::cuda
