#include "python/ops/layer.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>

#include "python/ops/cuda/operands.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

// What the forward pass keeps in one tensor of bytes: the density by value of every channel, then a
// level byte for every value, in the order of x.
struct CudaKept {
  int64_t table_bytes, codes;

  explicit CudaKept(const Tensor& x)
      : table_bytes(x.size(1) * core::kDensityNodes * static_cast<int64_t>(sizeof(int32_t))),
        codes(x.numel()) {}
  int64_t bytes() const { return table_bytes + codes; }
};

bool scope_is_batch(const LayerSettings& settings, const Tensor& x) {
  return settings.image_channels == 0 &&
         (settings.context_images == 0 || settings.context_images >= x.size(0));
}

// An operator of the package's Python half: the kernels know contexts of the whole batch alone, and
// it reshapes the others into such (python/qact/_cuda.py).
template <size_t kResults, class... Arguments>
std::array<Tensor, kResults> call_python(const char* name, const Arguments&... arguments) {
  using torch::stable::detail::from;
  std::array<StableIValue, sizeof...(Arguments)> stack{from(arguments)...};
  static_assert(sizeof...(Arguments) >= kResults);
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION));
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Tensor, kResults>{torch::stable::detail::to<Tensor>(stack[kIndex])...};
  }(std::make_index_sequence<kResults>());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> layer_forward(
    Tensor x, MaybeTensor weight_in, MaybeTensor bias_in, MaybeTensor weight_out,
    MaybeTensor bias_out, double eps, int64_t levels, double bound, double positive_share,
    double bandwidth, int64_t algorithm, int64_t image_channels, int64_t context_images, bool keep,
    bool track) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const LayerVectors vectors = {weight_in, bias_in, weight_out, bias_out};
  core::LayerForward call;
  call.quantile = check_layer(x, vectors, settings);
  check_computed("quantile_layer", x);
  if (!scope_is_batch(settings, x)) {
    auto [y, kept, stats, context] =
        call_python<4>("qact_python::layer_forward_in_scope", x, weight_in, bias_in, weight_out,
                       bias_out, eps, levels, bound, positive_share, bandwidth, algorithm,
                       image_channels, context_images, keep, track);
    return {y, kept, stats, context};
  }
  const DeviceGuard guard = device_guard(x);
  const FlatTensor in = flatten_readable(x);
  CudaResult y(x, in);
  const LayerOperands operands(vectors);
  const CudaKept sizes(x);
  Tensor kept = empty_beside(x, {keep ? sizes.bytes() : 0}, ScalarType::Byte);
  // Codes are written in any case.
  const Tensor codes = keep ? kept : empty_beside(x, {sizes.codes}, ScalarType::Byte);
  auto* bytes = static_cast<uint8_t*>(codes.mutable_data_ptr());
  Tensor stats = empty_beside(x, {x.size(1), core::kLayerStats}, ScalarType::Double);
  Tensor context = empty_beside(x, {track ? x.size(1) : 0, core::kContextBins}, ScalarType::Long);
  call.eps = eps;
  call.shape = in.shape;
  call.x = in.view;
  call.y = y.view();
  operands.fill(call);
  if (keep) call.table = reinterpret_cast<int32_t*>(bytes);
  call.code = keep ? bytes + sizes.table_bytes : bytes;
  call.stats = static_cast<double*>(stats.mutable_data_ptr());
  if (track) call.context = static_cast<int64_t*>(context.mutable_data_ptr());
  const CudaStream on = cuda_stream(x, core::cuda::layer_forward_scratch(call));
  core::cuda::layer_forward(call, on.stream);
  return {y.take(), std::move(kept), std::move(stats), std::move(context)};
}

std::tuple<Tensor, Tensor> layer_backward(Tensor grad_y, MaybeTensor x, Tensor kept, Tensor stats,
                                          MaybeTensor weight_in, MaybeTensor bias_in,
                                          MaybeTensor weight_out, double eps, int64_t levels,
                                          double bound, double positive_share, double bandwidth,
                                          int64_t algorithm, int64_t image_channels,
                                          int64_t context_images) {
  const LayerSettings settings = {eps,       levels,    bound,          positive_share,
                                  bandwidth, algorithm, image_channels, context_images};
  const MaybeTensor none;
  const LayerVectors vectors = {weight_in, bias_in, weight_out, none};
  core::LayerBackward call;
  call.quantile = check_layer_backward(grad_y, vectors, settings);
  if (!scope_is_batch(settings, grad_y)) {
    auto [grad_x, affine] =
        call_python<2>("qact_python::layer_backward_in_scope", grad_y, x, kept, stats, weight_in,
                       bias_in, weight_out, eps, levels, bound, positive_share, bandwidth,
                       algorithm, image_channels, context_images);
    return {grad_x, affine};
  }
  const CudaKept sizes(grad_y);
  check_kept(grad_y, x, kept, stats, settings, {sizes.bytes(), /*x=*/true});
  check_computed("quantile_layer_backward", grad_y);
  const DeviceGuard guard = device_guard(grad_y);
  const FlatTensor in = flatten_readable(*x), grad = flatten_alike(grad_y, in);
  CudaResult grad_x(*x, in);
  const LayerOperands operands(vectors);
  const Tensor statistics = as_contiguous(stats);
  Tensor affine = empty_beside(grad_y, {4, grad_y.size(1)}, ScalarType::Float);
  const auto* bytes = static_cast<const uint8_t*>(kept.const_data_ptr());
  call.eps = eps;
  call.shape = in.shape;
  call.grad_y = grad.view;
  call.x = in.view;
  operands.fill(call);
  call.table = reinterpret_cast<const int32_t*>(bytes);
  call.code = bytes + sizes.table_bytes;
  call.stats = static_cast<const double*>(statistics.const_data_ptr());
  call.grad_x = grad_x.view();
  const CudaStream on = cuda_stream(grad_y, core::cuda::layer_backward_scratch(call));
  core::cuda::layer_backward(call, static_cast<float*>(affine.mutable_data_ptr()), on.stream);
  return {grad_x.take(), std::move(affine)};
}

void layer_track(Tensor mean_in, Tensor var_in, Tensor mean_out, Tensor var_out, Tensor context,
                 Tensor batches, Tensor stats, Tensor batch, std::optional<double> momentum,
                 int64_t n, int64_t context_images, int64_t images) {
  check_track({mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
               context_images, images});
  const DeviceGuard guard = device_guard(context);
  // The kernel moves float32; what is of another type is moved in a copy.
  const std::array<Tensor, 4> running = {mean_in, var_in, mean_out, var_out};
  std::array<Tensor, 4> moved = running;
  for (Tensor& vector : moved) {
    if (vector.scalar_type() != ScalarType::Float) {
      vector = torch::stable::to(vector, ScalarType::Float);
    }
  }
  const Tensor of = as_contiguous(stats), counts = as_contiguous(batch);
  core::LayerTrack call = track_call({moved[0], moved[1], moved[2], moved[3], context, batches, of,
                                      counts, momentum, n, context_images, images});
  call.stats = static_cast<const double*>(of.const_data_ptr());
  call.batch = static_cast<const int64_t*>(counts.const_data_ptr());
  call.momentum = momentum ? *momentum : 1.0 / static_cast<double>(read_batches(batches) + 1);
  core::cuda::layer_track(call, cuda_stream(context).stream);
  for (size_t i = 0; i < running.size(); ++i) {
    if (moved[i].get() == running[i].get()) continue;
    Tensor rounded = running[i];
    torch::stable::copy_(rounded, moved[i]);
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(qact_python, CUDA, m) {
  m.impl("layer_forward", TORCH_BOX(&layer_forward));
  m.impl("layer_backward", TORCH_BOX(&layer_backward));
  m.impl("layer_track", TORCH_BOX(&layer_track));
}

}  // namespace qact::python
