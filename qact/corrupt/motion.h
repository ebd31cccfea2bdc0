// ImageMagick's motion blur: a one-sided Gaussian along a line.
#pragma once

#include <vector>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/filter.h"

namespace qact::corrupt {

class MotionBlur {
 public:
  explicit MotionBlur(MotionConstants constants);

  // Bytes on the scale of bytes in, whole numbers out.
  void operator()(std::vector<float>& values, image::Size size, double degrees) const;

 private:
  std::vector<double> weights_;
};

}  // namespace qact::corrupt
