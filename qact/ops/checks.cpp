#include "qact/ops/checks.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace qact::ops {
namespace {

bool floating(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf;
}

}  // namespace

void check_levels(const char* op, int64_t levels, int64_t most) {
  TORCH_CHECK(levels >= 2 && levels <= most, "[", op, "] expected levels in 2..", most, ", got ",
              levels);
}

core::Quantile check_quantile(const char* op, const QuantileOptions& options, int64_t most_levels) {
  check_levels(op, options.levels, most_levels);
  check_positive(op, "bound", options.bound);
  TORCH_CHECK(options.positive_share > 0 && options.positive_share < 1, "[", op,
              "] expected positive_share in (0, 1), got ", options.positive_share);
  check_positive(op, "bandwidth", options.bandwidth);
  core::Quantile quantile;
  quantile.levels = static_cast<int>(options.levels);
  quantile.bound = options.bound;
  quantile.positive_share = options.positive_share;
  quantile.bandwidth = options.bandwidth;
  const std::string_view algorithm = options.algorithm;
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

bool has_symbols(const at::Tensor& x) {
  return x.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

void check_values(const char* op, const at::Tensor& x) {
  TORCH_CHECK(floating(x) && x.dim() >= 2, "[", op,
              "] expected a floating tensor of 2 or more dimensions, got ", describe(x));
  if (has_symbols(x)) return;
  TORCH_CHECK(x.numel() > 0, "[", op, "] expected at least one value, got ", describe(x));
  TORCH_CHECK(x.numel() / x.size(1) <= core::kMostValues, "[", op,
              "] expected fewer than 2^30 values per channel, got ", describe(x));
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

void check_channels(const char* op, const char* name, const MaybeTensor& vector, const Named& as) {
  if (vector) check_vector(op, {name, *vector}, as.tensor.sym_size(1), as);
}

void check_in_place(const char* op, const Named& found) {
  TORCH_CHECK(found.tensor.is_contiguous(), "[", op, "] expected ", found.name,
              " to be contiguous, since it is written in place, got ", describe(found.tensor),
              " with strides ", describe(found.tensor.sym_strides()));
}

void check_positive(const char* op, const char* name, double value) {
  TORCH_CHECK(std::isfinite(value) && value > 0, "[", op, "] expected a finite ", name,
              " > 0, got ", value);
}

}  // namespace qact::ops
