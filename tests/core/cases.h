// The table of awkward cases that every fast path is tested over: distributions, shapes,
// dtypes and layouts, and tensors that hold them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "qact/core/view.h"

namespace qact::core::testing {

enum class Distribution {
  normal,
  uniform,
  heavy_tailed,
  bimodal,
  ties,
  constant,
  positive,
  negative,
  beyond_bound,
  far_mean,
};
inline constexpr Distribution kDistributions[] = {
    Distribution::normal,   Distribution::uniform,  Distribution::heavy_tailed,
    Distribution::bimodal,  Distribution::ties,     Distribution::constant,
    Distribution::positive, Distribution::negative, Distribution::beyond_bound,
    Distribution::far_mean,
};
const char* name(Distribution distribution);
std::vector<double> draw(Distribution distribution, int64_t n, uint64_t seed);

// (B,C), (B,C,L), (B,C,H,W) and (B,C,D,H,W) all come to batch x channels x spatial.
inline constexpr Shape kShapes[] = {
    {1, 1, 1},          // one value
    {2, 3, 1},          // (2,3)
    {129, 17, 1},       // (129,17)
    {3, 2, 7},          // (3,2,7)
    {2, 3, 5 * 9},      // (2,3,5,9)
    {5, 19, 4 * 4},     // (5,19,4,4)
    {3, 2, 2 * 3 * 5},  // (3,2,2,3,5)
    {3, 2, 37 * 37},    // (3,2,37,37)
};

enum class Layout { contiguous, channels_last, sliced, transposed };
inline constexpr Layout kLayouts[] = {Layout::contiguous, Layout::channels_last, Layout::sliced,
                                      Layout::transposed};
const char* name(Layout layout);

inline constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
const char* name(DType dtype);

// A tensor of any layout and dtype, read and written as doubles. What lies between its
// values is guarded: intact() tells whether anyone wrote there.
class Tensor {
 public:
  Tensor(const Shape& shape, DType dtype = DType::f32, Layout layout = Layout::contiguous);

  const Shape& shape() const { return shape_; }
  View view() {
    View out = view_;
    out.data = bytes_.data() + first_;
    return out;
  }

  // The values of one channel, batch-major. set() rounds to the dtype.
  void set(int64_t channel, const std::vector<double>& values);
  std::vector<double> get(int64_t channel) const;

  bool intact() const;
  // The same bytes in the same places.
  bool operator==(const Tensor& other) const { return bytes_ == other.bytes_; }

 private:
  size_t offset(int64_t batch, int64_t channel, int64_t place) const;

  Shape shape_;
  View view_;
  size_t size_;   // of a value
  size_t first_;  // value, in bytes
  std::vector<unsigned char> bytes_;
};

// Every channel of x gets its own draw.
Tensor filled(const Shape& shape, Distribution distribution, uint64_t seed,
              DType dtype = DType::f32, Layout layout = Layout::contiguous);

// So many threads, each with a part of the range; the best SIMD level unless told.
Execution threads(int count);
Execution threads(int count, Simd simd);
std::vector<Simd> simd_levels();

// |a - b| / |b| in the Euclidean norm.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace qact::core::testing
