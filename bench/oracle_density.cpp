#include "bench/oracle_density.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace qact::bench {
namespace {

constexpr int kPerBandwidth = 128;
constexpr int kReach = 8 * kPerBandwidth;  // exp(-32) of the peak

// Weights shared among the two nearest cells, densities at the cells, linear between them.
class Cells {
 public:
  Cells(const core::reference::Neuron& neuron, double low, double high, double bandwidth)
      : width_(bandwidth / kPerBandwidth), first_(std::floor(low / width_) - 1) {
    const int count = static_cast<int>(std::ceil(high / width_) + 2 - first_);
    std::vector<double> weight(count + 2 * kReach), bell(2 * kReach + 1);
    for (size_t i = 0; i < neuron.value.size(); ++i) {
      const double t = neuron.value[i] / width_ - first_ + kReach, fraction = t - std::floor(t);
      if (t < 0 || t >= static_cast<double>(weight.size() - 1)) continue;
      weight[static_cast<size_t>(t)] += neuron.weight[i] * (1 - fraction);
      weight[static_cast<size_t>(t) + 1] += neuron.weight[i] * fraction;
    }
    for (int k = -kReach; k <= kReach; ++k) {
      const double d = static_cast<double>(k) / kPerBandwidth;
      bell[k + kReach] = std::exp(-0.5 * d * d) / (bandwidth * std::sqrt(2 * std::numbers::pi));
    }
    density_.resize(count);
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k <= 2 * kReach; ++k) density_[i] += weight[i + k] * bell[k];
    }
  }

  double at(double z) const {
    const double t = z / width_ - first_;
    const auto cell = static_cast<size_t>(t);
    return density_[cell] + (density_[cell + 1] - density_[cell]) * (t - std::floor(t));
  }

 private:
  double width_, first_;  // the first cell lies at first_ * width_
  std::vector<double> density_;
};

}  // namespace

std::vector<double> oracle_density(const std::vector<double>& z,
                                   const core::reference::Parameters& parameters) {
  constexpr size_t kCompared = 20;
  constexpr double kTolerance = 3e-4;
  const core::reference::Neuron neuron(z, parameters);
  const auto [low, high] = std::minmax_element(z.begin(), z.end());
  const Cells cells(neuron, *low, *high, parameters.bandwidth);
  std::vector<double> out;
  for (const double v : z) out.push_back(cells.at(v));
  for (size_t i = 0; i < z.size(); i += std::max<size_t>(1, z.size() / kCompared)) {
    const double expected = core::reference::density(neuron, z[i], parameters.bandwidth);
    if (!(std::abs(out[i] - expected) <= kTolerance * expected)) {
      throw std::runtime_error("[bench] expected a density of " + std::to_string(expected) +
                               " from the oracle's cells, got " + std::to_string(out[i]));
    }
  }
  return out;
}

}  // namespace qact::bench
