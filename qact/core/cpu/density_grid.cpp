#include "qact/core/cpu/density_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace qact::core::cpu {

void DensityGrid::reset(double low, double high, double bandwidth) {
  spacing_ = bandwidth / kPerBandwidth;
  inverse_spacing_ = kPerBandwidth / bandwidth;
  first_ = std::floor(low * inverse_spacing_) - 1;
  nodes_ = static_cast<int>(std::ceil(high * inverse_spacing_) + 1 - first_) + 1;
  // The convolution writes whole vectors, and reads kReach beyond them on either side.
  mass_.assign(padded(nodes_) + 2 * kReach, 0.0f);
  density_.resize(padded(nodes_ + 1));
  boxed_ = false;
}

void DensityGrid::add(double value, double weight) {
  const double t = value * inverse_spacing_ - first_;
  if (!(t >= -kReach) || t >= nodes_ + kReach - 1) return;
  const int i = static_cast<int>(std::floor(t));
  const double fraction = t - i;
  mass_[i + kReach] += static_cast<float>(weight * (1 - fraction));
  mass_[i + 1 + kReach] += static_cast<float>(weight * fraction);
}

// Two grid operations widen the kernel, in units of spacing^2: the deposit by 1/12 (a
// cell) or 1/6 (two neighbours), the interpolation by 1/6.
void DensityGrid::finish(const TableKernels& kernels) {
  using Taps = std::array<float, 2 * kReach + 1>;
  const auto make = [](double widening) {
    Taps taps{};
    const double variance = kPerBandwidth * kPerBandwidth - widening;
    double total = 0;
    for (int k = -kReach; k <= kReach; ++k) total += std::exp(-0.5 * k * k / variance);
    for (int k = -kReach; k <= kReach; ++k) {
      taps[k + kReach] = static_cast<float>(std::exp(-0.5 * k * k / variance) / total);
    }
    return taps;
  };
  static const Taps boxed = make(1.0 / 12 + 1.0 / 6);
  static const Taps added = make(1.0 / 6 + 1.0 / 6);
  kernels.convolve(mass_.data(), boxed_ ? boxed.data() : added.data(), 2 * kReach + 1,
                   static_cast<float>(inverse_spacing_), density_.data(), nodes_);
  density_[nodes_] = density_[nodes_ - 1];
}

float DensityGrid::at_node(double position) const {
  const double t = std::clamp(position, 0.0, static_cast<double>(nodes_ - 1));
  const int node = static_cast<int>(t);
  const float fraction = static_cast<float>(t - node);
  return density_[node] + (density_[node + 1] - density_[node]) * fraction;
}

}  // namespace qact::core::cpu
