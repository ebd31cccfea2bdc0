#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <vector>

#include "qact/core/cuda/world.h"
#include "qact/ops/cuda/operands.h"
#include "qact/ops/process_group.h"
#include "qact/ops/world_operands.h"

namespace qact::ops {
namespace {

// What a pass needs of the device's memory, on a stream.
class WorldScratch {
 public:
  explicit WorldScratch(const core::cuda::Stream& stream)
      : stream_(static_cast<cudaStream_t>(stream.handle)) {}
  core::cuda::WorldMemory memory() {
    return {[this](size_t bytes) {
              held_.push_back(c10::cuda::CUDACachingAllocator::get()->allocate(bytes));
              return held_.back().get();
            },
            [this](void* to, const void* from, size_t bytes) {
              C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
              C10_CUDA_CHECK(cudaStreamSynchronize(stream_));
            },
            [this](void* to, const void* from, size_t bytes) {
              C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
            }};
  }
  // What one round was given is of no use to the next one, which follows on the stream.
  void free() { held_.clear(); }

 private:
  cudaStream_t stream_;
  std::vector<at::DataPtr> held_;
};

void check_no_capture() {
  TORCH_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
              "[quantile_layer_world] expected a stream that is not captured as a CUDA graph: how "
              "many rounds there are depends on the values. Train with --cuda-graph off.");
}

WorldForwardHalves world_forward(const WorldHalves& x, const LayerAffine& affine,
                                 const LayerOptions& options, bool keep, std::string_view group) {
  core::LayerForward call;
  call.quantile = check_world_layer(x, affine, options);
  const at::Tensor& others = x.others;
  check_computed("quantile_layer_world", others);
  const c10::cuda::CUDAGuard guard(others.device());
  check_no_capture();
  call.eps = options.eps;
  const WorldForwardOperands operands(others, affine_of_others(x, affine), options, keep);
  operands.fill(call);
  const ProcessGroup ranks = process_group("quantile_layer_world", group);
  const CudaStream on = cuda_stream(others);
  WorldScratch scratch(on.stream);
  const auto device = core::cuda::world_device(call, on.stream, scratch.memory());
  const auto pass = core::world_forward(call, rank_in(ranks), *device, cpu_execution());
  LayerResult images;
  while (!pass->done()) {
    scratch.free();
    pass->count();
    PendingReduction round = start_all_reduce(ranks, pass->round(), others.device());
    if (!images.y.defined()) images = images_forward(x, affine, options, keep);
    round.wait();
    pass->next();
  }
  scratch.free();
  pass->write();
  return {operands.take(pass->values()), std::move(images)};
}

WorldBackwardHalves world_backward(const WorldHalves& grad_y, const WorldLayerKept& kept,
                                   const LayerAffine& affine, const LayerOptions& options,
                                   std::string_view group) {
  core::LayerBackward call;
  call.quantile = check_world_layer_backward(grad_y, kept, affine, options);
  const at::Tensor& others = grad_y.others;
  check_computed("quantile_layer_world_backward", others);
  const c10::cuda::CUDAGuard guard(others.device());
  call.eps = options.eps;
  const WorldBackwardOperands operands(others, kept, affine_of_others(grad_y, affine));
  operands.fill(call);
  const at::Tensor gradients = empty_beside(others, {4, others.size(1)}, at::kFloat);
  const at::Tensor own = empty_beside(others, {others.size(1), core::kWorldSums}, at::kDouble);

  const CudaStream on = cuda_stream(others, core::cuda::world_backward_scratch(call));
  core::cuda::world_backward_sums(call, own.data_ptr<double>(), on.stream);
  const at::Tensor all = own.clone();
  PendingReduction sums =
      start_all_reduce_sum(process_group("quantile_layer_world_backward", group), all);
  const auto [grad_images, affine_images] = images_backward(grad_y, kept, affine, options);
  sums.wait();
  core::cuda::world_backward_write(call, kept.values.const_data_ptr<int64_t>(),
                                   own.const_data_ptr<double>(), all.const_data_ptr<double>(),
                                   gradients.data_ptr<float>(), on.stream);
  return {{operands.take(), grad_images}, at::cat({affine_images, gradients}, 1)};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<world_forward>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<world_backward>);
}

}  // namespace qact::ops
