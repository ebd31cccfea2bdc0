// The plain operator with its density.
#pragma once

#include "qact/core/quantile.h"
#include "qact/core/reference.h"
#include "tests/core/cases.h"

namespace qact::core::testing {

struct ActivationRun {
  Tensor y, density;

  ActivationRun(Tensor& x, const Quantile& quantile, const Execution& execution = threads(1),
                Layout layout = Layout::contiguous)
      : y(x.shape(), x.view().dtype, layout), density(x.shape(), x.view().dtype, layout) {
    ActivationForward call;
    call.quantile = quantile;
    call.shape = x.shape();
    call.x = x.view();
    call.y = y.view();
    call.density = density.view();
    activation_forward(call, execution);
  }

  bool operator==(const ActivationRun& other) const = default;
};

inline Quantile with(Algorithm algorithm) {
  Quantile out;
  out.algorithm = algorithm;
  return out;
}

inline reference::Parameters parameters(const Quantile& quantile) {
  return {quantile.levels, quantile.bound, quantile.positive_share, quantile.bandwidth};
}

// The levels of a context's own members.
inline std::vector<int> oracle_levels(const std::vector<double>& x, const Quantile& quantile) {
  const auto q = reference::quantiles(reference::Neuron(x, parameters(quantile)), quantile.levels);
  std::vector<int> out;
  for (const double v : x) out.push_back(reference::level(v, q));
  return out;
}

inline std::vector<double> oracle_density(const std::vector<double>& x, const Quantile& quantile) {
  const reference::Neuron neuron(x, parameters(quantile));
  std::vector<double> out;
  for (const double v : x) out.push_back(reference::density(neuron, v, quantile.bandwidth));
  return out;
}

inline int to_level(double y, int levels) { return static_cast<int>(y * levels + 0.5); }

}  // namespace qact::core::testing
