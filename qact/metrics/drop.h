// What distortions cost: accuracy by severity, and errors summed over severities.
#pragma once

#include <span>
#include <vector>

namespace qact::metrics {

// accuracy[s] at severity s, 0 the clean one. drop(i, j) = accuracy[i] - accuracy[j] for
// all i < j, in the order (0,1), (0,2), ..., (1,2), ...
struct Drop {
  int from, to;
  double value;
};
std::vector<Drop> drops(std::span<const double> accuracy);

// error[d][s - 1] of distortion d at severity s. The mean over all of them: what the
// literature calls mean corruption error on the CIFAR sets.
double mean_corruption_error(const std::vector<std::vector<double>>& error);
// The same above the clean error.
double relative_corruption_error(const std::vector<std::vector<double>>& error, double clean);

// As on ImageNet-C: each distortion's summed error over a reference network's, then the
// mean over distortions. reference[d] is the reference's mean error; the relative one
// takes both errors above their clean ones.
double mean_corruption_error(const std::vector<std::vector<double>>& error,
                             std::span<const double> reference);
double relative_corruption_error(const std::vector<std::vector<double>>& error, double clean,
                                 std::span<const double> reference, double reference_clean);

}  // namespace qact::metrics
