// Both halves written to one output, against each by itself.
#include "qact/ops/tracked_halves.h"

#include <gtest/gtest.h>

#include "qact/ops/quantile_apply.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

struct HalvesCase {
  int64_t channels, first;
  torch::Tensor values;
  std::vector<torch::Tensor> affine, given;
  torch::Tensor quantiles;

  HalvesCase(const std::vector<int64_t>& shape, int64_t image_channels, torch::Dtype type)
      : channels(shape.at(1)), first(image_channels), values(torch::randn(shape).to(type)) {
    for (int i = 0; i < 4; ++i) {
      affine.push_back(torch::rand({channels}) + 0.5);
      given.push_back(torch::rand({channels - first}, torch::kDouble) + 0.5);
    }
    quantiles = std::get<0>(torch::randn({channels - first, 20}, torch::kDouble).sort(1));
  }

  torch::Tensor found(const torch::Tensor& x, bool quantised = true) const {
    return ops::tracked_halves(x, {affine[0], affine[1], affine[2], affine[3]},
                               {.scope = {.image_channels = first}},
                               {quantiles, given[0], given[1], given[2], given[3]}, quantised);
  }

  torch::Tensor expected(const torch::Tensor& x, bool quantised = true) const {
    const auto part = [&](int i) { return affine[i].narrow(0, 0, first); };
    const torch::Tensor images =
        std::get<0>(ops::quantile_layer(x.narrow(1, 0, first), {part(0), part(1), part(2), part(3)},
                                        {.scope = {.image_channels = first}}));
    const torch::Tensor others =
        ops::quantile_apply(x.narrow(1, first, channels - first), quantiles, given[0], given[1],
                            given[2], given[3], 0.5, quantised);
    return torch::cat({images, others}, 1);
  }
};

TEST(TrackedHalves, AreEachByItself) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (const auto& shape : {std::vector<int64_t>{7, 5, 4, 3}, {2, 5, 17, 19}, {3, 5, 9}}) {
    for (const int64_t first : {1, 2, 4}) {
      for (const torch::Dtype type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
        const HalvesCase of(shape, first, type);
        for (const Layout& layout : layouts()) {
          const torch::Tensor x = layout.of(of.values);
          const torch::Tensor y = of.found(x);
          EXPECT_TRUE(torch::equal(y, of.expected(x)));
          EXPECT_EQ(y.strides(), torch::empty_like(x).strides());
          EXPECT_TRUE(torch::equal(of.found(x, false), of.expected(x, false)));
        }
      }
    }
  }
}

TEST(TrackedHalves, CheckWhatTheyAreGiven) {
  const torch::NoGradGuard no_grad;
  HalvesCase of({4, 5, 3, 3}, 2, torch::kFloat);
  EXPECT_THROW(of.found(of.values.to(torch::kLong)), c10::Error);
  EXPECT_THROW(of.found(of.values.narrow(1, 0, 4)), c10::Error);
  of.quantiles = of.quantiles.narrow(0, 0, 2);
  EXPECT_THROW(of.found(of.values), c10::Error);
}

}  // namespace
}  // namespace qact::tests
