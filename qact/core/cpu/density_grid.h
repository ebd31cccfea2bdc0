// The density of a weighted context to about 0.3%, cheaply: weights on a grid of a
// quarter bandwidth, one convolution with fixed taps, linear interpolation. What the
// grid itself smooths is taken off the kernel's width.
#pragma once

#include <vector>

#include "qact/core/cpu/kernels.h"

namespace qact::core::cpu {

class DensityGrid {
 public:
  static constexpr int kPerBandwidth = 4;

  // Clears the grid for values in [low, high]: its size is their distance in bandwidths
  // times kPerBandwidth.
  void reset(double low, double high, double bandwidth);

  // One value at a time,
  void add(double value, double weight);
  // or the weight in each cell around a node: cell_edges() are where a cumulative
  // distribution is wanted, one more than there are nodes.
  const std::vector<float>& cell_edges();
  void set_cell(int node, float weight) { mass_[node + kReach] = weight; }

  void finish(const TableKernels& kernels);

  double spacing() const { return spacing_; }
  float at(double value) const { return line().at(static_cast<float>(value * inverse_spacing_ - first_)); }

  // The density along first + i * step, for real i.
  GridLine along(double first, double step) const {
    GridLine out = line();
    out.offset = static_cast<float>(first * inverse_spacing_ - first_);
    out.scale = static_cast<float>(step * inverse_spacing_);
    return out;
  }

 private:
  static constexpr int kReach = 4 * kPerBandwidth;  // nodes; exp(-8) of the peak

  GridLine line() const { return {density_.data(), 0, 1, static_cast<float>(nodes_ - 1)}; }

  double spacing_ = 1;
  double inverse_spacing_ = 1;
  double first_ = 0;  // the first node lies at first_ * spacing_
  int nodes_ = 0;
  bool boxed_ = false;  // filled by cells rather than by values
  std::vector<float> mass_, density_, edges_;
};

}  // namespace qact::core::cpu
