// The oracle: the mathematics in plain double loops, from the definitions alone. Every
// fast path is tested against it; nothing here is shared with any of them.
#pragma once

#include <vector>

namespace qact::core::reference {

struct Parameters {
  int levels = 100;
  double bound = 100.0;
  double positive_share = 0.5;
  double bandwidth = 0.5;
};

// One neuron's weighted context: its values with both bounds, ascending. NaN is left out.
struct Neuron {
  std::vector<double> value;
  std::vector<double> weight;

  Neuron(const std::vector<double>& context, const Parameters& parameters);
};

// q_1..q_levels, linear between the points (cumulative weight, value).
std::vector<double> quantiles(const Neuron& neuron, int levels);

// #{j : x >= q_j}
int level(double x, const std::vector<double>& quantiles);

// f(x) = sum_i w_i phi((x - z_i) / h) / h, and its integral F_h(x) = sum_i w_i Phi((x - z_i) / h).
double density(const Neuron& neuron, double x, double bandwidth);
double smoothed_cumulative(const Neuron& neuron, double x, double bandwidth);

// Norm, activation, norm on one channel, as BatchNorm in training does both norms.
struct LayerParameters {
  Parameters quantile;
  double eps = 1e-5;
  double weight_in = 1, bias_in = 0, weight_out = 1, bias_out = 0;
};

struct LayerResult {
  std::vector<double> y;
  std::vector<int> level;
  double mean_in, var_in, mean_out, var_out;  // biased variances
};
LayerResult layer(const std::vector<double>& x, const LayerParameters& parameters);

struct LayerGradient {
  std::vector<double> x, z;
  double weight_in = 0, bias_in = 0, weight_out = 0, bias_out = 0;
};
LayerGradient layer_gradient(const std::vector<double>& x, const std::vector<double>& grad_y,
                             const LayerParameters& parameters);
// What follows where levels, and densities at every z, are given.
LayerGradient layer_gradient(const std::vector<double>& x, const std::vector<double>& grad_y,
                             const std::vector<int>& level, const std::vector<double>& density,
                             const LayerParameters& parameters);

}  // namespace qact::core::reference
