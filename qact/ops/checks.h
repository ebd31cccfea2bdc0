// The border between torch and core: checks with messages that name the operator, what
// was found and what was expected, and tensors turned into plain pointers.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>

#include "qact/core/quantile.h"

namespace qact::ops {

using MaybeTensor = std::optional<at::Tensor>;
inline MaybeTensor maybe(const at::Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

// "int64 of shape (3)"
std::string describe(const at::Tensor& tensor);

inline constexpr int64_t kMostLevels = 65535;
inline constexpr int64_t kMostLayerLevels = 255;  // the fused layer saves a level as one byte

void check_levels(const char* op, int64_t levels, int64_t most = kMostLevels);
// The parameters of one neuron as an operator is given them.
core::Quantile check_quantile(const char* op, int64_t levels, double bound, double positive_share,
                              double bandwidth = 0.5, std::string_view algorithm = "auto",
                              int64_t most_levels = kMostLevels);

// A tensor by the name that the operator's schema gives it.
struct Named {
  const char* name;
  const at::Tensor& tensor;
};

// x is a floating tensor of 2 or more dimensions, with at least one value and at most 2^30 per
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
// The same for the channels of x, where there is a vector at all.
void check_channels(const char* op, const char* name, const MaybeTensor& vector,
                    const at::Tensor& x);
// What is written in place is contiguous: in an expanded tensor one place would be written for
// many, and a kernel that counts on its own strides would write beyond the end.
void check_in_place(const char* op, const Named& found);
void check_positive(const char* op, const char* name, double value);

// Tensors of no value yet on x's device, the second with the layout that empty_like gives. They
// come straight from the allocator: a kernel's own tensors concern nobody else, and the dispatcher
// would take longer than a small layer's memory.
at::Tensor empty_beside(const at::Tensor& x, at::IntArrayRef sizes, at::ScalarType type);
at::Tensor empty_as(const at::Tensor& x);

// A tensor as batch x channels x spatial. Most layouts are taken as they are; one whose
// spatial dimensions do not flatten into a single stride is copied, so the tensor is kept.
struct FlatTensor {
  at::Tensor tensor;
  core::Shape shape;
  core::View view;
};
FlatTensor flatten_spatial(const at::Tensor& x);
// Whether flatten_spatial() takes x as it is.
bool flattens(const at::Tensor& x);

// A result with the layout that empty_like gives, as Meta promises it. Where that does
// not flatten, it is written elsewhere and copied once it is taken.
class ResultTensor {
 public:
  explicit ResultTensor(const at::Tensor& like);
  const core::View& view() const { return flat_.view; }
  at::Tensor take() const;

 private:
  at::Tensor result_;
  FlatTensor flat_;
};

// float or double numbers of a channel vector, kept alive beside the pointer to them.
struct FlatVector {
  at::Tensor tensor;
  core::ChannelVector vector;
};
FlatVector flatten_vector(const MaybeTensor& vector);

// The type that per-channel tables of x are kept in: double for double, else float.
at::ScalarType table_type(const at::Tensor& x);

// Torch's threads and the CPU's best SIMD level, or QACT_SIMD's.
core::Execution cpu_execution();

}  // namespace qact::ops
