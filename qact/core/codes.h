// What the fused layer keeps of a value for its backward pass: one byte, its code.
//
// A code refines a level. Levels are narrow where values are many and wide in the tails, where the
// normalised input xhat and the density f differ most within a level. So a fixed grid of cells,
// finest there, lies over the context's range of xhat, and
//
//   code(x) = level(x) + cell(x).
//
// Both grow with z and never fall, so values of different levels or different cells have different
// codes. A table holds, for every code, what the backward pass needs of its values: their level,
// and the density and the mean of xhat. Tables cost 1,856 bytes, whatever the context's length.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "qact/core/mutant.h"
#include "qact/core/view.h"

namespace qact::core {

inline constexpr int kCodes = 256;

// Cells of xhat in the order of z. With u(t) = sign(t) (1 - (1 + (t / 2)^2)^(-1/2)), cells are
// equally wide in u: few near 0, where levels are narrow; most around two deviations; and ever
// wider ones in a long tail.
class CodeCells {
 public:
  // For values of xhat from low to high, and so many levels.
  CodeCells(double low, double high, int levels)
      : cells_(kCodes - levels + QACT_MUTANT("code_cells_one_more")),
        first_(u(low)),
        width_((u(high) - u(low)) / cells_),
        farthest_(std::max(std::abs(low), std::abs(high))) {}

  int cells() const { return cells_; }
  // Where cell j begins, 0 < j < cells().
  double edge(int j) const { return t(first_ + j * width_); }
  // |xhat| is no larger than this.
  double farthest() const { return farthest_; }

  // edge(j) = sign(u) scale() sqrt((1 - |u|)^-2 - 1), u = first() + j * width()
  double first() const { return first_; }
  double width() const { return width_; }
  static constexpr double scale() { return kScale; }

 private:
  static constexpr double kScale = 2;

  // Neither takes the difference of two numbers that are nearly 1, where t is tiny.
  static double u(double t) {
    const double square = t / kScale * (t / kScale), root = std::sqrt(1 + square);
    return std::isfinite(square) ? std::copysign(square / (root * (root + 1)), t)
                                 : std::copysign(1, t);
  }
  static double t(double u) {
    const double size = std::abs(u), rest = 1 - size;
    return std::copysign(kScale * std::sqrt(size * (2 - size)) / rest, u);
  }

  int cells_;
  double first_, width_, farthest_;
};

// Of one context.
struct CodeTable {
  double var_in, mean_out, var_out;  // biased; the outer norm's are those of level / levels
  double input_unit;                 // of `input`
  // Means over the context, with k the level.
  double f, f_k, f_xhat, f_k_xhat;
  float density[kCodes];  // f
  int16_t input[kCodes];  // the mean of xhat
  uint8_t level[kCodes];

  double xhat(int code) const { return input_unit * input[code]; }
};
inline constexpr int kCodeTableWords = sizeof(CodeTable) / sizeof(int32_t);
static_assert(sizeof(CodeTable) == 1856);

}  // namespace qact::core
