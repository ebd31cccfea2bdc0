// The ranks of a world on the emulated device.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "qact/core/cuda/world.h"
#include "tests/core/cuda/device_memory.h"
#include "tests/core/world_run.h"

namespace qact::core::testing {

// A pass with its memory, whose rounds are complete when they are looked at.
class CudaWorldForward final : public WorldForward {
 public:
  CudaWorldForward(const LayerForward& call, const Rank& rank) {
    cuda::WorldMemory memory;
    memory.allocate = [this](size_t bytes) {
      memory_.emplace_back().resize(bytes);
      return static_cast<void*>(memory_.back().data());
    };
    memory.to_host = memory.to_device = [](void* to, const void* from, size_t bytes) {
      emulator::device().synchronize();
      std::memcpy(to, from, bytes);
    };
    device_ = cuda::world_device(call, {}, memory);
    pass_ = world_forward(call, rank, *device_, Execution{});
  }
  bool done() const override { return pass_->done(); }
  Round round() override { return pass_->round(); }
  void count() override {
    memory_.clear();  // an earlier round's is not used again
    pass_->count();
    emulator::device().synchronize();
  }
  void next() override { pass_->next(); }
  int64_t values() const override { return pass_->values(); }
  void write() override {
    memory_.clear();
    pass_->write();
    emulator::device().synchronize();
  }

 private:
  std::list<DeviceArray<unsigned char>> memory_;
  std::unique_ptr<WorldDevice> device_;
  std::unique_ptr<WorldForward> pass_;
};

inline WorldBackend on_cuda() {
  WorldBackend out;
  out.forward = [](const LayerForward& call, const Rank& rank) {
    return std::make_unique<CudaWorldForward>(call, rank);
  };
  out.sums = [](const LayerBackward& call, double* sums) {
    run_with_scratch(cuda::world_backward_scratch(call), [&](const cuda::Stream& stream) {
      cuda::world_backward_sums(call, sums, stream);
    });
  };
  out.write = [](const LayerBackward& call, int64_t values, const double* own, const double* all) {
    const int64_t channels = call.shape.channels;
    DeviceArray<float> affine;
    affine.resize(4 * channels);
    run_with_scratch(cuda::world_backward_scratch(call), [&](const cuda::Stream& stream) {
      cuda::world_backward_write(call, &values, own, all, affine.data(), stream);
    });
    for (int64_t i = 0; i < 4 * channels; ++i) {
      call.grad_affine[i] = affine[i % 4 * channels + i / 4];
    }
  };
  return out;
}

}  // namespace qact::core::testing
