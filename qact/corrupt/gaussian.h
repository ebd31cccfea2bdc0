// Gaussian blur as scipy computes it.
#pragma once

#include <vector>

#include "qact/corrupt/filter.h"

namespace qact::corrupt {

// exp(-k^2 / 2 sigma^2), k = -radius..radius, normalised.
std::vector<double> gaussian_weights(double sigma, int radius);

// A separable Gaussian of radius int(truncate * sigma + .5). Lines are summed in double and in
// scipy's order, to the last bit: it decides whether a flat area keeps its byte when truncated.
class GaussianBlur {
 public:
  explicit GaussianBlur(double sigma, double truncate = 4, Border border = Border::clamp,
                        bool columns_alone = false);
  // T, float or double, is the type of the values between the two axes.
  template <class T>
  void operator()(std::vector<T>& values, image::Size size) const;

 private:
  std::vector<double> weights_;  // of the centre, then of the pairs outwards
  Border border_;
  bool columns_alone_;  // blurs along the columns, not across them
};

}  // namespace qact::corrupt
