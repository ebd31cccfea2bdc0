// What every device's fused layer is held against the composition over: layouts, types, algorithms
// and distributions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/core/activation_run.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {

using LayerKind = std::tuple<Layout, DType, Algorithm>;

inline std::string kind_name(const ::testing::TestParamInfo<LayerKind>& info) {
  constexpr const char* kAlgorithms[] = {"auto", "exact", "binned"};
  const auto [layout, dtype, algorithm] = info.param;
  return std::string(name(layout)) + "_" + name(dtype) + "_" +
         kAlgorithms[static_cast<int>(algorithm)];
}

// With a mean and a slope: without them, what is summed up over a channel is all but 0.
inline Tensor gradient_for(const Tensor& x, DType dtype, Layout layout, uint64_t seed) {
  Tensor out = filled(x.shape(), Distribution::normal, seed, dtype, layout);
  for (int64_t c = 0; c < x.shape().channels; ++c) out.set(c, with_trend(out.get(c), x.get(c)));
  return out;
}

// make_run(x, grad_y, affines, quantile) of every shape and distribution. `device` has what its
// gradients are stored in and made from.
template <class MakeRun>
void expect_composition(const LayerKind& kind, const std::vector<Shape>& shapes,
                        const LayerCase& device, const MakeRun& make_run) {
  const auto [layout, dtype, algorithm] = kind;
  for (const Shape& shape : shapes) {
    for (const Distribution distribution : kDistributions) {
      SCOPED_TRACE(std::string(name(distribution)) + " of " + std::to_string(shape.context_size()));
      // A constant's gradient is beyond what half can hold.
      if (dtype == DType::f16 && distribution == Distribution::constant) continue;
      Tensor x = filled(shape, distribution, 81, dtype, layout);
      Tensor grad_y = gradient_for(x, dtype, layout, 82);
      const Affines affines(shape.channels);
      const auto run = make_run(x, grad_y, affines, with(algorithm));
      ASSERT_TRUE(run.y.intact() && run.grad_x.intact());
      for (int64_t c = 0; c < shape.channels; ++c) {
        SCOPED_TRACE("channel " + std::to_string(c));
        const LayerCase given{x.get(c),
                              grad_y.get(c),
                              affines.of(c),
                              dtype,
                              with(algorithm).exact_for(shape.context_size()),
                              device.affine,
                              device.kept};
        expect_levels(given, run.found(c));
        expect_norms(given, run.found(c));
        expect_gradient(given, run.found(c));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace qact::core::testing
