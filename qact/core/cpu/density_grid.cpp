#include "qact/core/cpu/density_grid.h"

#include <array>
#include <cmath>

namespace qact::core::cpu {

void DensityGrid::reset(double low, double high, double bandwidth) {
  spacing_ = bandwidth / kPerBandwidth;
  inverse_spacing_ = kPerBandwidth / bandwidth;
  first_ = std::floor(low * inverse_spacing_) - 2;
  nodes_ = static_cast<int>(std::ceil(high * inverse_spacing_) + 2 - first_) + 1;
  mass_.assign(nodes_ + 2 * kReach + kLanes<float>, 0.0f);
  density_.resize(nodes_ + 1 + kLanes<float>);
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

const std::vector<float>& DensityGrid::cell_edges() {
  boxed_ = true;
  edges_.resize(nodes_ + 1);
  for (int i = 0; i <= nodes_; ++i) edges_[i] = static_cast<float>((first_ + i - 0.5) * spacing_);
  return edges_;
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

}  // namespace qact::core::cpu
