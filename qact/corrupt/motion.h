// ImageMagick's motion blur: a one-sided Gaussian along a line.
#pragma once

#include <vector>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/filter.h"

namespace qact::corrupt {

class MotionBlur {
 public:
  explicit MotionBlur(MotionConstants constants);

  // Values in [0, 255]; the results are whole numbers.
  void operator()(std::vector<float>& values, image::Size size, double degrees) const;

 private:
  std::vector<double> weights_;
};

}  // namespace qact::corrupt
