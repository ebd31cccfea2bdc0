#include "python/ops/tensors.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/strides.h"

namespace qact::python {
namespace {

const char* name_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return "float32";
    case ScalarType::Double:
      return "float64";
    case ScalarType::BFloat16:
      return "bfloat16";
    case ScalarType::Half:
      return "float16";
    case ScalarType::Long:
      return "int64";
    case ScalarType::Int:
      return "int32";
    case ScalarType::Byte:
      return "uint8";
    case ScalarType::Bool:
      return "bool";
    default:
      return "another type";
  }
}

bool floating(const Tensor& x) {
  const ScalarType type = type_of(x);
  return type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::BFloat16 ||
         type == ScalarType::Half;
}

core::DType dtype_of(const Tensor& x) {
  switch (type_of(x)) {
    case ScalarType::Double:
      return core::DType::f64;
    case ScalarType::BFloat16:
      return core::DType::bf16;
    case ScalarType::Half:
      return core::DType::f16;
    default:
      return core::DType::f32;
  }
}

bool same_device(const Tensor& a, const Tensor& b) {
  int32_t type[2] = {}, index[2] = {};
  for (const int i : {0, 1}) {
    const Tensor& tensor = i ? b : a;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type[i]));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(tensor.get(), &index[i]));
  }
  return type[0] == type[1] && index[0] == index[1];
}

std::string device_of(const Tensor& x) {
  const torch::stable::Device device = x.device();
  switch (device.type()) {
    case torch::headeronly::DeviceType::CPU:
      return "cpu";
    case torch::headeronly::DeviceType::CUDA:
      return "cuda:" + std::to_string(device.index());
    case torch::headeronly::DeviceType::Meta:
      return "meta";
    default:
      return "another device";
  }
}

bool one_stride(const Tensor& x, int64_t& stride) {
  const auto sizes = x.sizes(), strides = x.strides();
  return core::one_stride({sizes.data(), sizes.size()}, {strides.data(), strides.size()}, stride);
}

// Whether every place of the memory between the first and the last value holds one value.
bool dense(const Tensor& x) {
  if (x.is_contiguous()) return true;
  const auto sizes = x.sizes(), strides = x.strides();
  std::vector<int64_t> order;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (sizes[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const int64_t d : order) {
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Tensor empty_strided(const Tensor& beside, int64_t dims, const int64_t* sizes,
                     const int64_t* strides, ScalarType type) {
  int32_t device_type = 0, device_index = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(beside.get(), &device_type));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(beside.get(), &device_index));
  AtenTensorHandle made = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      dims, sizes, strides, torch::stable::detail::to<int32_t>(torch::stable::detail::from(type)),
      device_type, device_index, &made));
  return Tensor(made);
}

}  // namespace

// The usual ones first: torch asks for the number of each type, one after the other.
ScalarType type_of(const Tensor& tensor) {
  int32_t number = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &number));
  if (number == aoti_torch_dtype_float32()) return ScalarType::Float;
  if (number == aoti_torch_dtype_float64()) return ScalarType::Double;
  if (number == aoti_torch_dtype_int64()) return ScalarType::Long;
  return tensor.scalar_type();
}

std::string describe(const Tensor& tensor) {
  std::ostringstream out;
  out << name_of(type_of(tensor)) << " of shape (";
  const auto sizes = tensor.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? "," : "") << sizes[i];
  out << ')';
  return out.str();
}

core::Quantile check_quantile(const char* op, int64_t levels, double bound, double positive_share,
                              double bandwidth, int64_t algorithm, int64_t most_levels) {
  QACT_EXPECT(levels >= 2 && levels <= most_levels, "[", op, "] expected levels in 2..",
              most_levels, ", got ", levels);
  check_positive(op, "bound", bound);
  QACT_EXPECT(positive_share > 0 && positive_share < 1, "[", op,
              "] expected positive_share in (0, 1), got ", positive_share);
  check_positive(op, "bandwidth", bandwidth);
  QACT_EXPECT(algorithm >= 0 && algorithm <= 2, "[", op,
              "] expected algorithm 0 (auto), 1 (exact) or 2 (binned), got ", algorithm);
  core::Quantile quantile;
  quantile.levels = static_cast<int>(levels);
  quantile.bound = bound;
  quantile.positive_share = positive_share;
  quantile.bandwidth = bandwidth;
  quantile.algorithm = static_cast<core::Algorithm>(algorithm);
  return quantile;
}

void check_positive(const char* op, const char* name, double value) {
  QACT_EXPECT(std::isfinite(value) && value > 0, "[", op, "] expected a finite ", name,
              " > 0, got ", value);
}

void check_values(const char* op, const Tensor& x) {
  QACT_EXPECT(floating(x) && x.dim() >= 2, "[", op,
              "] expected a floating tensor of 2 or more dimensions, got ", describe(x));
  QACT_EXPECT(x.size(1) > 0 && values_per_channel(x) <= core::kMostValues, "[", op,
              "] expected a channel and fewer than 2^30 values per channel, got ", describe(x));
}

void check_statistics(const char* op, const Tensor& x) {
  check_values(op, x);
  QACT_EXPECT(values_per_channel(x) > 1, "[", op,
              "] expected more than one value per channel to take statistics from, got ",
              describe(x));
}

void check_device(const char* op, const Named& found, const Named& as) {
  QACT_EXPECT(same_device(found.tensor, as.tensor), "[", op, "] expected ", found.name, " on ",
              device_of(as.tensor), ", as ", as.name, ", got ", device_of(found.tensor));
}

void check_like(const char* op, const Named& found, const Named& as) {
  check_device(op, found, as);
  const auto a = found.tensor.sizes(), b = as.tensor.sizes();
  QACT_EXPECT(type_of(found.tensor) == type_of(as.tensor) &&
                  std::equal(a.begin(), a.end(), b.begin(), b.end()),
              "[", op, "] expected ", found.name, " to be ", describe(as.tensor), ", got ",
              describe(found.tensor));
}

void check_table(const char* op, const Named& found, ScalarType type, int64_t rows, int64_t columns,
                 const Named& as) {
  check_device(op, found, as);
  const Tensor& table = found.tensor;
  QACT_EXPECT(type_of(table) == type && table.dim() == 2 && table.size(0) == rows &&
                  table.size(1) == columns,
              "[", op, "] expected ", found.name, " to be ", name_of(type), " of shape (", rows,
              ",", columns, "), got ", describe(table));
}

void check_context(const char* op, const Named& found) {
  const Tensor& context = found.tensor;
  QACT_EXPECT(type_of(context) == ScalarType::Long && context.dim() == 2 &&
                  context.size(1) == core::kContextBins,
              "[", op, "] expected ", found.name, " to be an int64 tensor of shape (channels,",
              core::kContextBins, "), got ", describe(context));
}

void check_vector(const char* op, const Named& found, int64_t channels, const Named& as) {
  check_device(op, found, as);
  const Tensor& vector = found.tensor;
  QACT_EXPECT(floating(vector) && vector.dim() == 1 && vector.size(0) == channels, "[", op,
              "] expected ", found.name, " to be a floating tensor of shape (", channels,
              "), one number per channel, got ", describe(vector));
}

void check_channels(const char* op, const char* name, const MaybeTensor& vector, const Tensor& x) {
  if (vector) check_vector(op, {name, *vector}, x.size(1), {"x", x});
}

void check_in_place(const char* op, const Named& found) {
  QACT_EXPECT(found.tensor.is_contiguous(), "[", op, "] expected ", found.name,
              " to be contiguous, since it is written in place, got ", describe(found.tensor));
}

int64_t values_per_channel(const Tensor& x) { return x.numel() / x.size(1); }

// Only what is not: the dispatcher takes its time to hand a tensor back as it is.
Tensor as_contiguous(const Tensor& x) {
  return x.is_contiguous() ? x : torch::stable::contiguous(x);
}

Tensor empty_beside(const Tensor& x, std::initializer_list<int64_t> sizes, ScalarType type) {
  constexpr size_t kMostDims = 2;
  QACT_EXPECT(sizes.size() <= kMostDims, "expected tables of at most 2 dimensions");
  const int64_t* all = std::data(sizes);
  int64_t strides[kMostDims] = {1, 1};
  if (sizes.size() == kMostDims) strides[0] = all[1];
  return empty_strided(x, static_cast<int64_t>(sizes.size()), all, strides, type);
}

Tensor empty_with_strides_of(const Tensor& x) {
  return empty_strided(x, x.dim(), x.sizes().data(), x.strides().data(), type_of(x));
}

Tensor empty_as(const Tensor& x) {
  return dense(x) ? empty_with_strides_of(x) : torch::stable::empty_like(x);
}

ScalarType table_type(const Tensor& x) {
  return type_of(x) == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

bool flattens(const Tensor& x) {
  int64_t stride = 1;
  return one_stride(x, stride);
}

FlatTensor flatten_spatial(const Tensor& x) {
  int64_t stride = 1;
  const bool taken = one_stride(x, stride);
  FlatTensor out{taken ? x : as_contiguous(x), {}, {}};
  const int64_t places = x.size(0) * x.size(1);
  out.shape = {x.size(0), x.size(1), places > 0 ? x.numel() / places : 0};
  out.view = {out.tensor.mutable_data_ptr(), dtype_of(x), out.tensor.stride(0),
              out.tensor.stride(1), taken ? stride : 1};
  return out;
}

ResultTensor::ResultTensor(const Tensor& like)
    : result_(empty_as(like)),
      flat_(flatten_spatial(flattens(result_) ? result_
                                              : torch::stable::new_empty(like, like.sizes()))),
      copied_(flat_.tensor.get() != result_.get()) {}

Tensor ResultTensor::take() {
  if (copied_) torch::stable::copy_(result_, flat_.tensor);
  return result_;
}

FlatVector flatten_vector(const MaybeTensor& vector) {
  FlatVector out;
  if (!vector) return out;
  const bool is_double = type_of(*vector) == ScalarType::Double;
  const ScalarType type = is_double ? ScalarType::Double : ScalarType::Float;
  Tensor ready = type_of(*vector) == type ? *vector : torch::stable::to(*vector, type);
  ready = as_contiguous(ready);
  out.vector = {ready.const_data_ptr(), is_double};
  out.tensor = std::move(ready);
  return out;
}

core::RunningVector running_vector(const Tensor& vector) {
  return {vector.mutable_data_ptr(), dtype_of(vector)};
}

}  // namespace qact::python
