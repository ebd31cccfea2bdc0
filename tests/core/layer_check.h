// One channel of the fused layer, on whatever device, held against the oracle: its levels first,
// then all that follows from x and the levels that were found.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "qact/core/reference.h"
#include "qact/core/view.h"
#include "tests/core/tolerance.h"

namespace qact::core::testing {

struct LayerCase {
  std::vector<double> x, grad_y;
  reference::LayerParameters parameters;
  DType dtype;
  bool exact;
  DType affine = DType::f64;  // of the gradients of weights and biases
  tolerance::Kept kept = tolerance::Kept::codes;
};

// What a layer made of it.
struct LayerFound {
  std::vector<int> level;
  std::vector<double> y, grad_x;
  double mean_in, var_in, mean_out, var_out;
  double weight_in, bias_in, weight_out, bias_out;  // gradients
};

void expect_levels(const LayerCase& given, const LayerFound& found);
// Those of any context's own members; `slack` in levels, and what z may be off by.
void expect_levels(const std::vector<double>& z, const std::vector<int>& found,
                   const reference::Parameters& parameters, double slack,
                   const std::function<double(double)>& rounding);
void expect_norms(const LayerCase& given, const LayerFound& found);

// Takes time quadratic in the channel's length.
void expect_gradient(const LayerCase& given, const LayerFound& found);

// The same for long channels, where grad_y is sparse_gradient()'s: the density counts at `places`.
void expect_sparse_gradient(const LayerCase& given, const LayerFound& found,
                            const std::vector<int64_t>& places);

// A random gradient at a few places, without any part along 1 or along the output; these two are
// added everywhere. The outer norm takes them out again, so that it does not matter what the
// density is elsewhere, but every sum over the channel has to be right for that.
std::vector<double> sparse_gradient(const std::vector<int>& level,
                                    const std::vector<int64_t>& places, uint64_t seed);

// Adds a mean and a part along x, without which the sums over a channel are all but 0.
std::vector<double> with_trend(std::vector<double> grad_y, const std::vector<double>& x);

}  // namespace qact::core::testing
