// Input checks of the operators, with messages that name the operator, what was found and what was
// expected.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "qact/core/quantile.h"
#include "qact/ops/describe.h"
#include "qact/ops/options.h"

namespace qact::ops {

using MaybeTensor = std::optional<at::Tensor>;
inline MaybeTensor maybe(const at::Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

inline constexpr int64_t kMostLevels = 65535;
inline constexpr int64_t kMostLayerLevels = 255;  // a code, one byte, refines the level

void check_levels(const char* op, int64_t levels, int64_t most = kMostLevels);
// The parameters of one neuron as an operator is given them.
core::Quantile check_quantile(const char* op, const QuantileOptions& options,
                              int64_t most_levels = kMostLevels);

// A tensor by the name that the operator's schema gives it.
struct Named {
  const char* name;
  const at::Tensor& tensor;
};

// Whether sizes are symbols, as they are when shapes are traced.
bool has_symbols(const at::Tensor& x);

// x is a floating tensor of 2 or more dimensions, with at least one value and fewer than 2^30 per
// channel; sizes that are only symbols are left to the run.
void check_values(const char* op, const at::Tensor& x);
// The same with more than one value per channel, which have a variance.
void check_statistics(const char* op, const at::Tensor& x);
// Kernels are handed plain pointers: every tensor of a call lies on the device of `as`. The checks
// that take `as` begin with this one.
void check_device(const char* op, const Named& found, const Named& as);
// The type and the shape of `as`, as a gradient has them.
void check_like(const char* op, const Named& found, const Named& as);
// That type, and the shape (rows, columns).
void check_table(const char* op, const Named& found, at::ScalarType type, const c10::SymInt& rows,
                 const c10::SymInt& columns, const Named& as);
// One floating number per channel.
void check_vector(const char* op, const Named& found, const c10::SymInt& channels, const Named& as);
// The same for the channels of `as`, where there is a vector at all.
void check_channels(const char* op, const char* name, const MaybeTensor& vector, const Named& as);
// What is written in place is contiguous: in an expanded tensor one place would be written for
// many, and a kernel that counts on its own strides would write beyond the end.
void check_in_place(const char* op, const Named& found);
void check_positive(const char* op, const char* name, double value);

}  // namespace qact::ops
