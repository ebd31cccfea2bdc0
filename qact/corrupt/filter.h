// Correlation with a few taps, and Gaussian blur, on float images (HWC).
#pragma once

#include <span>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

enum class Border {
  clamp,       // aaa|abcd|ddd
  reflect,     // cba|abcd|dcb
  reflect101,  // dcb|abcd|cba
  zero,        // 000|abcd|000, for sample_at alone
};

int border_index_outside(Border border, int i, int n);

// The index inside [0, n) that stands for i; -1 where zero stands.
inline int border_index(Border border, int i, int n) {
  return i >= 0 && i < n ? i : border_index_outside(border, i, n);
}

struct Tap {
  int dy = 0, dx = 0;
  float weight = 0;
};

// out(y, x) = sum over taps of weight * in(y + dy, x + dx). `out` must not be `in`.
void correlate(const float* in, image::Size size, Border border, std::span<const Tap> taps,
               float* out);

// The same for taps that mirror each other above and below: given are those of dy >= 0.
// Mirrored rows are added up first, which halves the work.
void correlate_mirrored(const float* in, image::Size size, Border border, std::span<const Tap> taps,
                        float* out);

// exp(-k^2 / 2 sigma^2), k = -radius..radius, normalised.
std::vector<double> gaussian_weights(double sigma, int radius);

// A separable Gaussian of radius int(truncate * sigma + .5).
class GaussianBlur {
 public:
  explicit GaussianBlur(double sigma, double truncate = 4, Border border = Border::clamp,
                        bool columns_alone = false);
  void operator()(std::vector<float>& values, image::Size size) const;

 private:
  std::vector<Tap> across_, down_;
  Border border_;
  bool columns_alone_;  // blurs along the columns, not across them
};

}  // namespace qact::corrupt
