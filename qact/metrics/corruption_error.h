// The mean corruption errors (mCE) of ImageNet-C, relative to a reference network. Means and
// accuracy drops over rows of results are in results/curve.h.
#pragma once

#include <span>
#include <vector>

namespace qact::metrics {

// error[d][s - 1] is the error of corruption d at severity s, reference[d] the reference network's
// mean error over severities. mCE is the mean over corruptions of the ratio of both; in the
// relative one, the errors on clean images are subtracted first.
double mean_corruption_error(const std::vector<std::vector<double>>& error,
                             std::span<const double> reference);
double relative_corruption_error(const std::vector<std::vector<double>>& error, double clean,
                                 std::span<const double> reference, double reference_clean);

}  // namespace qact::metrics
