#include "qact/ops/checks.h"

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

std::string list(c10::SymIntArrayRef numbers) {
  std::ostringstream out;
  out << '(';
  for (size_t i = 0; i < numbers.size(); ++i) out << (i ? "," : "") << numbers[i];
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

bool has_symbols(const at::Tensor& x) {
  return x.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
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
         list(tensor.sym_sizes());
}

void check_levels(const char* op, int64_t levels, int64_t most) {
  TORCH_CHECK(levels >= 2 && levels <= most, "[", op, "] expected levels in 2..", most, ", got ",
              levels);
}

core::Quantile check_quantile(const char* op, int64_t levels, double bound, double positive_share,
                              double bandwidth, std::string_view algorithm, int64_t most_levels) {
  check_levels(op, levels, most_levels);
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

void check_values(const char* op, const at::Tensor& x) {
  TORCH_CHECK(floating(x) && x.dim() >= 2, "[", op,
              "] expected a floating tensor of 2 or more dimensions, got ", describe(x));
  if (has_symbols(x)) return;
  TORCH_CHECK(x.numel() > 0, "[", op, "] expected at least one value, got ", describe(x));
  constexpr int64_t kMost = int64_t{1} << 30;
  TORCH_CHECK(x.numel() / x.size(1) <= kMost, "[", op,
              "] expected at most 2^30 values per channel, got ", describe(x));
}

void check_statistics(const char* op, const at::Tensor& x) {
  check_values(op, x);
  TORCH_CHECK(has_symbols(x) || x.numel() > x.size(1), "[", op,
              "] expected more than one value per channel to take statistics from, got ",
              describe(x));
}

void check_device(const char* op, const Named& found, const Named& as) {
  TORCH_CHECK(found.tensor.device() == as.tensor.device(), "[", op, "] expected ", found.name,
              " on ", as.tensor.device(), ", as ", as.name, ", got ", found.tensor.device());
}

void check_like(const char* op, const Named& found, const Named& as) {
  check_device(op, found, as);
  TORCH_CHECK(found.tensor.scalar_type() == as.tensor.scalar_type() &&
                  found.tensor.sym_sizes() == as.tensor.sym_sizes(),
              "[", op, "] expected ", found.name, " to be ", describe(as.tensor), ", got ",
              describe(found.tensor));
}

void check_table(const char* op, const Named& found, at::ScalarType type, const c10::SymInt& rows,
                 const c10::SymInt& columns, const Named& as) {
  check_device(op, found, as);
  const at::Tensor& table = found.tensor;
  TORCH_CHECK(table.scalar_type() == type && table.dim() == 2 && table.sym_size(0) == rows &&
                  table.sym_size(1) == columns,
              "[", op, "] expected ", found.name, " to be ", c10::getDtypeNames(type).first,
              " of shape (", rows, ",", columns, "), got ", describe(table));
}

void check_vector(const char* op, const Named& found, const c10::SymInt& channels,
                  const Named& as) {
  check_device(op, found, as);
  const at::Tensor& vector = found.tensor;
  TORCH_CHECK(floating(vector) && vector.dim() == 1 && vector.sym_size(0) == channels, "[", op,
              "] expected ", found.name, " to be a floating tensor of shape (", channels,
              "), one number per channel, got ", describe(vector));
}

void check_channels(const char* op, const char* name, const MaybeTensor& vector,
                    const at::Tensor& x) {
  if (vector) check_vector(op, {name, *vector}, x.sym_size(1), {"x", x});
}

void check_in_place(const char* op, const Named& found) {
  TORCH_CHECK(found.tensor.is_contiguous(), "[", op, "] expected ", found.name,
              " to be contiguous, since it is written in place, got ", describe(found.tensor),
              " with strides ", list(found.tensor.sym_strides()));
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

bool flattens(const at::Tensor& x) {
  int64_t stride = 1;
  return one_stride(x, stride);
}

FlatTensor flatten_spatial(const at::Tensor& x) {
  FlatTensor out;
  int64_t stride = 1;
  const bool taken = one_stride(x, stride);
  out.tensor = taken ? x : x.contiguous();
  out.shape = {x.size(0), x.size(1), x.numel() / (x.size(0) * x.size(1))};
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
