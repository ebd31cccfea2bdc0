#include "qact/ops/border.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <sstream>

#include "qact/core/cpu/dispatch.h"

namespace qact::ops {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << '(';
  for (int64_t i = 0; i < tensor.dim(); ++i) out << (i ? "," : "") << tensor.sym_size(i);
  out << ')';
  return out.str();
}

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

bool floating(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf;
}

// Whether dimensions 2.. are one run of places with a single stride, which it returns.
bool one_stride(const at::Tensor& x, int64_t& stride) {
  stride = 1;
  const at::IntArrayRef sizes = x.sizes(), strides = x.strides();
  int64_t places = 0;  // of the dimensions so far, 0 before the first
  for (int64_t d = x.dim() - 1; d >= 2; --d) {
    if (sizes[d] == 1) continue;
    if (places == 0) {
      stride = strides[d];
      places = sizes[d];
    } else if (strides[d] == stride * places) {
      places *= sizes[d];
    } else {
      return false;
    }
  }
  return true;
}

c10::DispatchKeySet backend_of(const at::Tensor& x) {
  return c10::DispatchKeySet(x.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
}

c10::Allocator* allocator_of(const at::Tensor& x) {
  return x.is_cuda() ? at::detail::getCUDAHooks().getCUDADeviceAllocator() : c10::GetCPUAllocator();
}

}  // namespace

std::string describe(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first) + " of shape " +
         shape_of(tensor);
}

core::Quantile check_quantile(const char* op, int64_t levels, double bound, double positive_share,
                              double bandwidth, std::string_view algorithm, int64_t most_levels) {
  TORCH_CHECK(levels >= 2 && levels <= most_levels, "[", op, "] expected levels in 2..",
              most_levels, ", got ", levels);
  check_positive(op, "bound", bound);
  TORCH_CHECK(positive_share > 0 && positive_share < 1, "[", op,
              "] expected positive_share in (0, 1), got ", positive_share);
  check_positive(op, "bandwidth", bandwidth);
  core::Quantile quantile;
  quantile.levels = static_cast<int>(levels);
  quantile.bound = bound;
  quantile.positive_share = positive_share;
  quantile.bandwidth = bandwidth;
  if (algorithm == "auto") {
    quantile.algorithm = core::Algorithm::automatic;
  } else if (algorithm == "exact") {
    quantile.algorithm = core::Algorithm::exact;
  } else if (algorithm == "binned") {
    quantile.algorithm = core::Algorithm::binned;
  } else {
    TORCH_CHECK(false, "[", op, "] expected algorithm auto, exact or binned, got '",
                std::string(algorithm), "'");
  }
  return quantile;
}

void check_kind(const char* op, const at::Tensor& x) {
  TORCH_CHECK(floating(x) && x.dim() >= 2, "[", op,
              "] expected a floating tensor of 2 or more dimensions, got ", describe(x));
}

void check_values(const char* op, const at::Tensor& x) {
  check_kind(op, x);
  TORCH_CHECK(x.numel() > 0, "[", op, "] expected at least one value, got ", describe(x));
  constexpr int64_t kMost = int64_t{1} << 30;
  TORCH_CHECK(x.numel() / x.size(1) <= kMost, "[", op,
              "] expected at most 2^30 values per channel, got ", describe(x));
}

void check_channels(const char* op, const char* name, const MaybeTensor& vector,
                    const at::Tensor& x) {
  if (!vector) return;
  TORCH_CHECK(floating(*vector) && vector->dim() == 1 && vector->sym_size(0) == x.sym_size(1), "[",
              op, "] expected ", name, " to be a floating tensor of shape (", x.sym_size(1),
              "), one number per channel, got ", describe(*vector));
}

void check_like(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  TORCH_CHECK(tensor.scalar_type() == x.scalar_type() && tensor.sym_sizes() == x.sym_sizes(), "[",
              op, "] expected ", name, " to be ", describe(x), ", got ", describe(tensor));
}

void check_positive(const char* op, const char* name, double value) {
  TORCH_CHECK(std::isfinite(value) && value > 0, "[", op, "] expected a finite ", name,
              " > 0, got ", value);
}

at::Tensor empty_beside(const at::Tensor& x, at::IntArrayRef sizes, at::ScalarType type) {
  return at::detail::empty_generic(sizes, allocator_of(x), backend_of(x), type, std::nullopt);
}

at::Tensor empty_as(const at::Tensor& x) {
  if (!x.is_non_overlapping_and_dense()) return at::empty_like(x);
  return at::detail::empty_strided_generic(x.sizes(), x.strides(), allocator_of(x), backend_of(x),
                                           x.scalar_type());
}

bool folds(const at::Tensor& x) {
  int64_t stride = 1;
  return one_stride(x, stride);
}

Folded fold(const at::Tensor& x) {
  Folded out;
  int64_t stride = 1;
  const bool taken = one_stride(x, stride);
  out.tensor = taken ? x : x.contiguous();
  out.shape = {x.size(0), x.size(1), x.numel() / (x.size(0) * x.size(1))};
  out.view = {out.tensor.data_ptr(), dtype_of(x), out.tensor.stride(0), out.tensor.stride(1),
              taken ? stride : 1};
  return out;
}

Output::Output(const at::Tensor& like)
    : result_(empty_as(like)),
      folded_(fold(folds(result_) ? result_ : at::empty(like.sizes(), like.options()))) {}

at::Tensor Output::take() const {
  if (!folded_.tensor.is_same(result_)) result_.copy_(folded_.tensor);
  return result_;
}

FoldedVector fold_vector(const MaybeTensor& vector) {
  FoldedVector out;
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
