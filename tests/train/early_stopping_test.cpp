#include "qact/train/early_stopping.h"

#include <gtest/gtest.h>

namespace qact::train {
namespace {

TEST(EarlyStopping, WaitsForARise) {
  TrainConfig config;
  config.early_stopping = 0.1;
  config.early_stopping_patience = 2;
  EarlyStopping stopping(config);
  for (const double accuracy : {0.5, 0.55, 0.59, 0.61, 0.65, 0.7}) {
    stopping.end_epoch(accuracy);
    EXPECT_FALSE(stopping.should_stop()) << accuracy;
    EarlyStopping other(config);
    other.load_state_dict(stopping.state_dict());
    stopping = other;
  }
  stopping.end_epoch(0.7);
  EXPECT_TRUE(stopping.should_stop());
}

}  // namespace
}  // namespace qact::train
