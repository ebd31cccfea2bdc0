#include "qact/corrupt/motion.h"

#include <cmath>
#include <numbers>

namespace qact::corrupt {

MotionBlur::MotionBlur(MotionConstants constants) {
  const int width = 2 * static_cast<int>(std::ceil(constants.radius)) + 1;
  double sum = 0;
  for (int i = 0; i < width; ++i) {
    weights_.push_back(std::exp(-0.5 * i * i / (constants.sigma * constants.sigma)));
    sum += weights_.back();
  }
  for (double& weight : weights_) weight /= sum;
}

void MotionBlur::operator()(std::vector<float>& values, image::Size size, double degrees) const {
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  std::vector<Tap> taps(weights_.size());
  for (size_t i = 0; i < taps.size(); ++i) {
    taps[i] = {static_cast<int>(std::ceil(i * sine - 0.5)),
               static_cast<int>(std::ceil(i * cosine - 0.5)), weights_[i]};
  }
  std::vector<float> blurred(values.size());
  correlate(values.data(), size, Border::clamp, taps, blurred.data());
  // Rounded to 16 bits, then cut to 8 on the way through a PNG file.
  for (float& value : blurred) {
    value = static_cast<float>(static_cast<int>(257 * value + 0.5f) / 257);
  }
  values.swap(blurred);
}

}  // namespace qact::corrupt
