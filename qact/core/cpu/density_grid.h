// The density of a weighted context to about 0.3%, cheaply: weights on a grid of a
// quarter bandwidth, one convolution with fixed taps, linear interpolation. What the
// grid itself smooths is taken off the kernel's width.
#pragma once

#include <array>

#include "qact/core/cpu/aligned.h"
#include "qact/core/cpu/kernels.h"

namespace qact::core::cpu {

class DensityGrid {
 public:
  static constexpr int kPerBandwidth = 4;
  static constexpr int kReach = 4 * kPerBandwidth;  // nodes; exp(-8) of the peak

  // What a weight adds to the nodes from kReach below it to kReach above, 1 in all.
  using Taps = std::array<float, 2 * kReach + 1>;
  static const Taps& taps();

  // Whether a grid from low to high is short enough: no binned context is longer.
  static bool fits(double low, double high, double bandwidth) {
    constexpr double kMostBandwidths = 1025;
    return high - low <= kMostBandwidths * bandwidth;
  }
  // Clears the grid for the density over [low, high]: its size is their distance in
  // bandwidths times kPerBandwidth. Weights further out than its margins are ignored.
  void reset(double low, double high, double bandwidth);

  // One value at a time,
  void add(double value, double weight);
  // or the weight in each of kCells equal cells around every node, the first from
  // first_edge() on.
  static constexpr int kCells = 4;
  double first_edge() const { return (first_ - 0.5) * spacing_; }
  void set_cells(const float* weight);

  void finish(const TableKernels& kernels);

  int nodes() const { return nodes_; }
  double first() const { return first_ * spacing_; }
  double spacing() const { return spacing_; }
  // At the nodes, and once more at the last.
  const float* density() const { return density_.data(); }
  // At z = scale * input + offset.
  DensityNodes along(double scale, double offset) const;

  float at(double value) const { return at_node(value * inverse_spacing_ - first_); }
  // For any real position among the nodes; the ends' values beyond them.
  float at_node(double position) const;

 private:
  double spacing_ = 1;
  double inverse_spacing_ = 1;
  double first_ = 0;  // the first node lies at first_ * spacing_
  int nodes_ = 0;
  AlignedVector<float> mass_, density_;
};

}  // namespace qact::core::cpu
