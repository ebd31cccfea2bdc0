#include "qact/core/cpu/density_grid.h"

#include <algorithm>
#include <cmath>

#include "qact/core/mutant.h"

namespace qact::core::cpu {

void DensityGrid::reset(double low, double high, double bandwidth) {
  spacing_ = bandwidth / kPerBandwidth;
  inverse_spacing_ = kPerBandwidth / bandwidth;
  first_ = std::floor(low * inverse_spacing_) - 1;
  nodes_ = static_cast<int>(std::ceil(high * inverse_spacing_) + 1 - first_) + 1;
  // The convolution writes whole vectors, and reads kReach beyond them on either side.
  mass_.assign(padded(nodes_) + 2 * kReach, 0.0f);
  density_.resize(std::max<size_t>(padded(nodes_ + 1), DensityNodes::kShort + 2));
}

void DensityGrid::add(double value, double weight) {
  const double t = value * inverse_spacing_ - first_;
  if (!(t >= -kReach) || t >= nodes_ + kReach - 1) return;
  const int i = static_cast<int>(std::floor(t));
  const double fraction = t - i;
  mass_[i + kReach] += static_cast<float>(weight * (1 - fraction));
  mass_[i + 1 + kReach] += static_cast<float>(weight * fraction);
}

// A cell's weight goes to the two nodes around its middle, as a value's would.
void DensityGrid::set_cells(const float* weight) {
  static_assert(kCells == 4);
  float* mass = mass_.data() + kReach;
  for (int i = 0; i < nodes_; ++i, weight += kCells) {
    mass[i - 1] += 0.375f * weight[0] + 0.125f * weight[1];
    mass[i] += 0.625f * (weight[0] + weight[3]) + 0.875f * (weight[1] + weight[2]);
    mass[i + 1] += 0.125f * weight[2] + 0.375f * weight[3];
  }
}

// The deposit on two neighbours and the interpolation between two widen the kernel by a
// sixth of spacing^2 each.
const DensityGrid::Taps& DensityGrid::taps() {
  static const Taps taps = [] {
    Taps out{};
    const double kVariance =
        kPerBandwidth * kPerBandwidth - (QACT_MUTANT("density_grid_width") ? 0 : 1.0 / 3);
    double total = 0;
    for (int k = -kReach; k <= kReach; ++k) total += std::exp(-0.5 * k * k / kVariance);
    for (int k = -kReach; k <= kReach; ++k) {
      out[k + kReach] = static_cast<float>(std::exp(-0.5 * k * k / kVariance) / total);
    }
    return out;
  }();
  return taps;
}

void DensityGrid::finish(const TableKernels& kernels) {
  kernels.convolve(mass_.data(), taps().data(), 2 * kReach + 1,
                   static_cast<float>(inverse_spacing_), density_.data(), nodes_);
  density_[nodes_] = density_[nodes_ - 1];
}

DensityNodes DensityGrid::along(double scale, double offset) const {
  return {
      density(), static_cast<float>(scale * inverse_spacing_),
      static_cast<float>(offset * inverse_spacing_ - first_) - QACT_MUTANT("density_node_shifted"),
      static_cast<float>(nodes_ - 1)};
}

float DensityGrid::at_node(double position) const {
  const double t = std::clamp(position, 0.0, static_cast<double>(nodes_ - 1));
  const int node = static_cast<int>(t);
  const float fraction = static_cast<float>(t - node);
  return density_[node] + (density_[node + 1] - density_[node]) * fraction;
}

}  // namespace qact::core::cpu
