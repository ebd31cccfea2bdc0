#include "qact/ops/quantile_layer_world.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/cuda/world.h"
#include "qact/ops/cuda/operands.h"
#include "qact/ops/process_group.h"
#include "qact/ops/quantile_layer_world_impl.h"

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

 private:
  cudaStream_t stream_;
  std::vector<at::DataPtr> held_;
};

void check_no_capture() {
  TORCH_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
              "[quantile_layer_world] expected a stream that is not captured as a CUDA graph: how "
              "many rounds there are depends on the values. Train with --cuda-graph off.");
}

WorldLayerForward world_forward(const at::Tensor& x, const LayerAffine& affine,
                                const LayerOptions& options, bool keep, std::string_view group) {
  core::LayerForward call;
  call.quantile = check_world_layer(x, affine, options);
  check_computed("quantile_layer_world", x);
  const c10::cuda::CUDAGuard guard(x.device());
  check_no_capture();
  call.eps = options.eps;
  const FlatTensor in = flatten_spatial(x);
  const ResultTensor y(x);
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  const FlatVector weight_in = flatten_vector(affine.weight_in);
  const FlatVector bias_in = flatten_vector(affine.bias_in);
  const FlatVector weight_out = flatten_vector(affine.weight_out);
  const FlatVector bias_out = flatten_vector(affine.bias_out);
  call.weight_in = weight_in.vector;
  call.bias_in = bias_in.vector;
  call.weight_out = weight_out.vector;
  call.bias_out = bias_out.vector;
  const int64_t rows = x.size(1), columns = x.numel() / rows;
  const at::Tensor code = empty_beside(x, {rows, columns}, at::kByte);
  const at::Tensor table = empty_beside(x, {keep ? rows : 0, core::kCodeTableWords}, at::kInt);
  const at::Tensor stats = empty_beside(x, {rows, core::kLayerStats}, at::kDouble);
  const at::Tensor context = empty_beside(
      x, options.track ? at::IntArrayRef{rows, core::kContextBins} : at::IntArrayRef{0}, at::kLong);
  call.code = code.data_ptr<uint8_t>();
  call.table = keep ? table.data_ptr<int32_t>() : nullptr;
  call.stats = stats.data_ptr<double>();
  call.context = options.track ? context.data_ptr<int64_t>() : nullptr;

  const ProcessGroup ranks = process_group("quantile_layer_world", group);
  const CudaStream on = cuda_stream(x);
  WorldScratch scratch(on.stream);
  const auto device = core::cuda::world_device(call, on.stream, scratch.memory());
  const auto pass = core::world_forward(call, rank_in(ranks), *device, cpu_execution());
  while (!pass->done()) {
    pass->count();
    all_reduce(ranks, pass->round(), x.device());
    pass->next();
  }
  pass->write();
  const at::Tensor values = at::scalar_tensor(pass->values(), x.options().dtype(at::kLong));
  return {{y.take(), stats, context, values},
          {keep ? code : empty_beside(x, {0, columns}, at::kByte), table, values}};
}

std::tuple<at::Tensor, at::Tensor> world_backward(const at::Tensor& grad_y,
                                                  const WorldLayerKept& kept,
                                                  const LayerAffine& affine,
                                                  const LayerOptions& options,
                                                  std::string_view group) {
  core::LayerBackward call;
  call.quantile = check_world_layer_backward(grad_y, kept, affine, options);
  check_computed("quantile_layer_world_backward", grad_y);
  const c10::cuda::CUDAGuard guard(grad_y.device());
  call.eps = options.eps;
  const FlatTensor grad = flatten_spatial(grad_y);
  const ResultTensor grad_x(grad_y);
  call.shape = grad.shape;
  call.grad_y = grad.view;
  call.grad_x = grad_x.view();
  const FlatVector weight_in = flatten_vector(affine.weight_in);
  const FlatVector weight_out = flatten_vector(affine.weight_out);
  call.weight_in = weight_in.vector;
  call.weight_out = weight_out.vector;
  const at::Tensor code = kept.code.contiguous(), table = kept.table.contiguous();
  call.code = code.const_data_ptr<uint8_t>();
  call.table = table.const_data_ptr<int32_t>();
  const at::Tensor gradients = empty_beside(grad_y, {4, grad_y.size(1)}, at::kFloat);
  const at::Tensor own = empty_beside(grad_y, {grad_y.size(1), core::kWorldSums}, at::kDouble);

  const CudaStream on = cuda_stream(grad_y, core::cuda::world_backward_scratch(call));
  core::cuda::world_backward_sums(call, own.data_ptr<double>(), on.stream);
  const at::Tensor all = own.clone();
  all_reduce_sum(process_group("quantile_layer_world_backward", group), all);
  core::cuda::world_backward_write(call, kept.values.const_data_ptr<int64_t>(),
                                   own.const_data_ptr<double>(), all.const_data_ptr<double>(),
                                   gradients.data_ptr<float>(), on.stream);
  return {grad_x.take(), gradients};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CUDA, m) {
  m.impl("_quantile_layer_world_forward", world_layer_forward_entry<world_forward>);
  m.impl("_quantile_layer_world_backward", world_layer_backward_entry<world_backward>);
}

}  // namespace qact::ops
