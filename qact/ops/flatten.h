// Tensors as core takes them: plain pointers, with the spatial dimensions flattened into one; and
// how core runs on torch's threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/core/quantile.h"
#include "qact/ops/checks.h"

namespace qact::ops {

core::DType dtype_of(const at::Tensor& x);

// Tensors of no value yet on x's device, the second with the layout that empty_like gives. They
// come straight from the allocator: a kernel's own tensors concern nobody else, and the dispatcher
// would take longer than a small layer's memory.
at::Tensor empty_beside(const at::Tensor& x, at::IntArrayRef sizes, at::ScalarType type);
at::Tensor empty_as(const at::Tensor& x);

// A tensor as batch x channels x spatial. Most layouts are taken as they are; one whose
// spatial dimensions do not flatten into a single stride is copied, so the tensor is held here.
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

// float or double numbers of a channel vector, held beside the pointer to them.
struct FlatVector {
  at::Tensor tensor;
  core::ChannelVector vector;
};
FlatVector flatten_vector(const MaybeTensor& vector);

// The type of per-channel tables of x: double for double, else float.
at::ScalarType table_type(const at::Tensor& x);

// Torch's threads and the CPU's best SIMD level, or QACT_SIMD's.
core::Execution cpu_execution();

}  // namespace qact::ops
