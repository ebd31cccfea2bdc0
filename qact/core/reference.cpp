#include "qact/core/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qact::core::reference {
namespace {

struct Normalised {
  std::vector<double> value;
  double mean = 0, variance = 0, deviation = 0;

  Normalised(const std::vector<double>& x, double eps) {
    const double n = static_cast<double>(x.size());
    for (const double v : x) mean += v;
    mean /= n;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    deviation = std::sqrt(variance + eps);
    for (const double v : x) value.push_back((v - mean) / deviation);
  }
};

// The gradient through a norm: from that of the normalised values to that of its input.
std::vector<double> normalise_gradient(const Normalised& norm, const std::vector<double>& grad) {
  const double n = static_cast<double>(grad.size());
  double mean = 0, mean_with_value = 0;
  for (size_t i = 0; i < grad.size(); ++i) {
    mean += grad[i] / n;
    mean_with_value += grad[i] * norm.value[i] / n;
  }
  std::vector<double> out;
  for (size_t i = 0; i < grad.size(); ++i) {
    out.push_back((grad[i] - mean - norm.value[i] * mean_with_value) / norm.deviation);
  }
  return out;
}

std::vector<double> scale_and_shift(const std::vector<double>& x, double scale, double shift) {
  std::vector<double> out;
  for (const double v : x) out.push_back(scale * v + shift);
  return out;
}

std::vector<double> activation(const std::vector<int>& level, int levels) {
  std::vector<double> u;
  for (const int k : level) u.push_back(static_cast<double>(k) / levels);
  return u;
}

}  // namespace

Neuron::Neuron(const std::vector<double>& context, const Parameters& p) {
  for (const double z : context) {
    if (!std::isnan(z)) value.push_back(z);
  }
  value.push_back(p.bound);
  value.push_back(-p.bound);
  std::sort(value.begin(), value.end());
  double positives = 0, negatives = 0;
  for (const double z : value) (z >= 0 ? positives : negatives) += 1;
  for (const double z : value) {
    weight.push_back(z >= 0 ? p.positive_share / positives : (1 - p.positive_share) / negatives);
  }
}

std::vector<double> quantiles(const Neuron& neuron, int levels) {
  std::vector<double> out;
  for (int j = 1; j <= levels; ++j) {
    const double tau = static_cast<double>(j) / (levels + 1);
    double cumulative = 0, q = neuron.value.back();
    for (size_t i = 0; i < neuron.value.size(); ++i) {
      const double before = cumulative;
      cumulative += neuron.weight[i];
      if (cumulative < tau) continue;
      q = neuron.value[i];
      if (i > 0 && std::isfinite(q) && std::isfinite(neuron.value[i - 1])) {
        const double share = (tau - before) / neuron.weight[i];
        q = neuron.value[i - 1] + (neuron.value[i] - neuron.value[i - 1]) * share;
      }
      break;
    }
    out.push_back(q);
  }
  return out;
}

int level(double x, const std::vector<double>& quantiles) {
  int count = 0;
  for (const double q : quantiles) count += x >= q;
  return count;
}

double density(const Neuron& neuron, double x, double h) {
  double sum = 0;
  for (size_t i = 0; i < neuron.value.size(); ++i) {
    if (std::isinf(x) || std::isinf(neuron.value[i])) continue;
    const double d = (x - neuron.value[i]) / h;
    sum += neuron.weight[i] * std::exp(-0.5 * d * d) / (h * std::sqrt(2 * std::numbers::pi));
  }
  return sum;
}

double smoothed_cumulative(const Neuron& neuron, double x, double h) {
  double sum = 0;
  for (size_t i = 0; i < neuron.value.size(); ++i) {
    sum += neuron.weight[i] * 0.5 * std::erfc(-(x - neuron.value[i]) / h / std::numbers::sqrt2);
  }
  return sum;
}

LayerResult layer(const std::vector<double>& x, const LayerParameters& p) {
  const Normalised in(x, p.eps);
  const std::vector<double> z = scale_and_shift(in.value, p.weight_in, p.bias_in);
  const std::vector<double> q = quantiles(Neuron(z, p.quantile), p.quantile.levels);
  LayerResult result;
  for (const double v : z) result.level.push_back(level(v, q));
  const Normalised out(activation(result.level, p.quantile.levels), p.eps);
  result.y = scale_and_shift(out.value, p.weight_out, p.bias_out);
  result.mean_in = in.mean;
  result.var_in = in.variance;
  result.mean_out = out.mean;
  result.var_out = out.variance;
  return result;
}

LayerGradient layer_gradient(const std::vector<double>& x, const std::vector<double>& grad_y,
                             const LayerParameters& p) {
  const std::vector<double> z = scale_and_shift(Normalised(x, p.eps).value, p.weight_in, p.bias_in);
  const Neuron neuron(z, p.quantile);
  std::vector<double> f;
  for (const double v : z) f.push_back(density(neuron, v, p.quantile.bandwidth));
  return layer_gradient(x, grad_y, layer(x, p).level, f, p);
}

LayerGradient layer_gradient(const std::vector<double>& x, const std::vector<double>& grad_y,
                             const std::vector<int>& level, const std::vector<double>& density,
                             const LayerParameters& p) {
  const Normalised in(x, p.eps), out(activation(level, p.quantile.levels), p.eps);
  LayerGradient grad;
  for (size_t i = 0; i < x.size(); ++i) {
    grad.weight_out += grad_y[i] * out.value[i];
    grad.bias_out += grad_y[i];
  }
  grad.z = normalise_gradient(out, scale_and_shift(grad_y, p.weight_out, 0));
  for (size_t i = 0; i < x.size(); ++i) {
    grad.z[i] *= density[i];
    grad.weight_in += grad.z[i] * in.value[i];
    grad.bias_in += grad.z[i];
  }
  grad.x = normalise_gradient(in, scale_and_shift(grad.z, p.weight_in, 0));
  return grad;
}

}  // namespace qact::core::reference
