// The border between torch and core: checks with messages that name the operator, what
// was found and what was expected, and tensors turned into plain pointers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <utility>

#include "qact/core/quantile.h"

namespace qact::ops {

// "int64 of shape (3)"
std::string describe(const at::Tensor& tensor);

// The parameters of one neuron as an operator is given them.
core::Quantile check_quantile(const char* op, int64_t levels, double bound,
                              double positive_share, double bandwidth,
                              std::string_view algorithm, int64_t most_levels = 65535);

// A floating tensor of 2 or more dimensions.
void check_kind(const char* op, const char* name, const at::Tensor& x);
// The same with at least one value and at most 2^30 per channel, on real tensors only.
void check_values(const char* op, const char* name, const at::Tensor& x);
// One number per channel, where there is a tensor at all.
void check_channels(const char* op, const char* name, const at::Tensor& vector,
                    const at::Tensor& x);
void check_eps(const char* op, double eps);

// A tensor as batch x channels x spatial. Most layouts are taken as they are; one whose
// spatial dimensions do not fold into a single stride is copied, so the tensor is kept.
struct Folded {
  at::Tensor tensor;
  core::Shape shape;
  core::View view;
};
Folded fold(const at::Tensor& x);
// An output with the layout of `like`.
Folded fold_empty_like(const at::Tensor& like);

// float or double numbers of a channel vector, kept alive beside the pointer to them.
struct FoldedVector {
  at::Tensor tensor;
  core::ChannelVector vector;
};
FoldedVector fold_vector(const at::Tensor& vector);

// The type that per-channel tables of x are kept in: double for double, else float.
at::ScalarType table_type(const at::Tensor& x);

// Torch's threads and the CPU's best SIMD level, or QACT_SIMD's.
core::Execution cpu_execution();

}  // namespace qact::ops
