// Gaussian blur as scipy computes it.
#pragma once

#include <vector>

#include "qact/corrupt/filter.h"

namespace qact::corrupt {

// exp(-k^2 / 2 sigma^2), k = -radius..radius, normalised.
std::vector<double> gaussian_weights(double sigma, int radius);

// A separable Gaussian of radius int(truncate * sigma + .5). Sums are in double and in scipy's
// order, equal to the last bit: that bit decides whether a flat area keeps its value when
// truncated.
class GaussianBlur {
 public:
  explicit GaussianBlur(double sigma, double truncate = 4, Border border = Border::clamp,
                        bool columns_only = false);
  // T, float or double, is the type of the values between the two passes.
  template <class T>
  void operator()(std::vector<T>& values, image::Size size) const;

 private:
  std::vector<double> weights_;  // of the centre, then of the pairs at distance 1, 2, ...
  Border border_;
  bool columns_only_;  // the vertical pass alone
};

}  // namespace qact::corrupt
