#include "qact/metrics/corruption_error.h"

#include <gtest/gtest.h>

namespace qact::metrics {
namespace {

TEST(CorruptionError, IsTheMeanOfRatiosToTheReference) {
  const std::vector<std::vector<double>> error = {{0.2, 0.4}, {0.5, 0.7}};
  const std::vector<double> reference = {0.6, 0.6};
  EXPECT_NEAR(mean_corruption_error(error, reference), 0.75, 1e-12);
  EXPECT_NEAR(relative_corruption_error(error, 0.1, reference, 0.4), 1.75, 1e-12);
  EXPECT_THROW(mean_corruption_error(error, std::vector<double>{0.6}), std::invalid_argument);
}

}  // namespace
}  // namespace qact::metrics
