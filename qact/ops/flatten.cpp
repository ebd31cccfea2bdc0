#include "qact/ops/flatten.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include "qact/core/cpu/dispatch.h"
#include "qact/core/strides.h"

namespace qact::ops {
namespace {

bool one_stride(const at::Tensor& x, int64_t& stride) {
  const auto sizes = x.sizes(), strides = x.strides();
  return core::one_stride({sizes.data(), sizes.size()}, {strides.data(), strides.size()}, stride);
}

c10::DispatchKeySet backend_of(const at::Tensor& x) {
  return c10::DispatchKeySet(x.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
}

c10::Allocator* allocator_of(const at::Tensor& x) {
  return x.is_cuda() ? at::detail::getCUDAHooks().getCUDADeviceAllocator() : c10::GetCPUAllocator();
}

}  // namespace

core::DType dtype_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return core::DType::f64;
    case at::kBFloat16:
      return core::DType::bf16;
    case at::kHalf:
      return core::DType::f16;
    default:
      return core::DType::f32;
  }
}

at::Tensor empty_beside(const at::Tensor& x, at::IntArrayRef sizes, at::ScalarType type) {
  return at::detail::empty_generic(sizes, allocator_of(x), backend_of(x), type, std::nullopt);
}

at::Tensor empty_as(const at::Tensor& x) {
  if (!x.is_non_overlapping_and_dense()) return at::empty_like(x);
  return at::detail::empty_strided_generic(x.sizes(), x.strides(), allocator_of(x), backend_of(x),
                                           x.scalar_type());
}

bool flattens(const at::Tensor& x) {
  int64_t stride = 1;
  return one_stride(x, stride);
}

FlatTensor flatten_spatial(const at::Tensor& x) {
  FlatTensor out;
  int64_t stride = 1;
  const bool taken = one_stride(x, stride);
  out.tensor = taken ? x : x.contiguous();
  out.shape = {x.size(0), x.size(1), c10::multiply_integers(x.sizes().slice(2))};
  out.view = {out.tensor.data_ptr(), dtype_of(x), out.tensor.stride(0), out.tensor.stride(1),
              taken ? stride : 1};
  return out;
}

ResultTensor::ResultTensor(const at::Tensor& like)
    : result_(empty_as(like)),
      flat_(
          flatten_spatial(flattens(result_) ? result_ : at::empty(like.sizes(), like.options()))) {}

at::Tensor ResultTensor::take() const {
  if (!flat_.tensor.is_same(result_)) result_.copy_(flat_.tensor);
  return result_;
}

FlatVector flatten_vector(const MaybeTensor& vector) {
  FlatVector out;
  if (!vector) return out;
  const bool is_double = vector->scalar_type() == at::kDouble;
  const auto type = is_double ? at::kDouble : at::kFloat;
  const bool ready = vector->scalar_type() == type && vector->is_contiguous();
  out.tensor = ready ? *vector : vector->to(type).contiguous();
  out.vector = {out.tensor.data_ptr(), is_double};
  return out;
}

at::ScalarType table_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

core::Execution cpu_execution() {
  core::Execution execution;
  execution.simd = core::cpu::choose_simd();
  execution.parallel = [](int64_t count, int64_t grain,
                          const std::function<void(int64_t, int64_t)>& body) {
    at::parallel_for(0, count, grain, body);
  };
  return execution;
}

}  // namespace qact::ops
