// Tensors of torch's stable ABI as core takes them, and the checks of what an operator is given. No
// symbol of torch's C++ libraries is used, so that one build serves many versions of torch.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "qact/core/quantile.h"

// Its name in torch 2.11.
#ifndef STABLE_TORCH_ERROR_CODE_CHECK
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

namespace qact::python {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using MaybeTensor = std::optional<Tensor>;

ScalarType type_of(const Tensor& tensor);

// "float32 of shape (2,3)"
std::string describe(const Tensor& tensor);

// Raises what follows, one part after the other. torch's own check would name its place in a file
// first.
#define QACT_EXPECT(condition, ...) \
  if (!(condition)) ::qact::python::fail(__VA_ARGS__)

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::runtime_error(message.str());
}

// A tensor by the name that the operator's schema gives it.
struct Named {
  const char* name;
  const Tensor& tensor;
};

inline constexpr int64_t kMostLevels = 65535;
inline constexpr int64_t kMostLayerLevels = 255;  // a code, one byte, refines the level

// How a value is ranked, as the operators' schemas have it: algorithm 0 is auto, 1 exact, 2 binned.
core::Quantile check_quantile(const char* op, int64_t levels, double bound, double positive_share,
                              double bandwidth, int64_t algorithm,
                              int64_t most_levels = kMostLevels);
void check_positive(const char* op, const char* name, double value);
// x is a floating tensor of 2 or more dimensions with fewer than 2^30 values per channel.
void check_values(const char* op, const Tensor& x);
// The same with more than one value per channel, which have a variance.
void check_statistics(const char* op, const Tensor& x);
void check_device(const char* op, const Named& found, const Named& as);
void check_like(const char* op, const Named& found, const Named& as);
// Of that type and shape; -1 stands for any size.
void check_table(const char* op, const Named& found, ScalarType type, int64_t rows, int64_t columns,
                 const Named& as);
void check_context(const char* op, const Named& found);
void check_vector(const char* op, const Named& found, int64_t channels, const Named& as);
void check_channels(const char* op, const char* name, const MaybeTensor& vector, const Tensor& x);
// What is written in place is contiguous.
void check_in_place(const char* op, const Named& found);

int64_t values_per_channel(const Tensor& x);
Tensor as_contiguous(const Tensor& x);

// Tensors of no value yet on x's device. They come straight from the allocator: the dispatcher
// would take longer than a small layer's memory.
Tensor empty_beside(const Tensor& x, std::initializer_list<int64_t> sizes, ScalarType type);
// With the layout that empty_like gives, and with the very strides of x.
Tensor empty_as(const Tensor& x);
Tensor empty_with_strides_of(const Tensor& x);
// The type of per-channel tables of x: double for double, else float.
ScalarType table_type(const Tensor& x);

// A tensor as batch x channels x spatial. One whose spatial dimensions do not flatten into a single
// stride is copied, so the tensor is held here.
struct FlatTensor {
  Tensor tensor;
  core::Shape shape;
  core::View view;
};
FlatTensor flatten_spatial(const Tensor& x);
// Whether flatten_spatial() takes x as it is.
bool flattens(const Tensor& x);

// A result with the layout that empty_like gives, as the fake kernels promise it.
class ResultTensor {
 public:
  explicit ResultTensor(const Tensor& like);
  const FlatTensor& flat() const { return flat_; }
  const core::View& view() const { return flat_.view; }
  Tensor take();

 private:
  Tensor result_;
  FlatTensor flat_;
  bool copied_;
};

// float or double numbers of a channel vector, held beside the pointer to them.
struct FlatVector {
  MaybeTensor tensor;
  core::ChannelVector vector;
};
FlatVector flatten_vector(const MaybeTensor& vector);

core::RunningVector running_vector(const Tensor& vector);

}  // namespace qact::python
