// What corruptions cost, against a reference network, as on ImageNet-C. Means of rows, drops among
// them, are in results/curve.h.
#pragma once

#include <span>
#include <vector>

namespace qact::metrics {

// error[d][s - 1] of corruption d at severity s: each corruption's summed error over the reference
// network's, then the mean over corruptions. reference[d] is the reference's mean error; the
// relative one takes both errors above their clean ones.
double mean_corruption_error(const std::vector<std::vector<double>>& error,
                             std::span<const double> reference);
double relative_corruption_error(const std::vector<std::vector<double>>& error, double clean,
                                 std::span<const double> reference, double reference_clean);

}  // namespace qact::metrics
