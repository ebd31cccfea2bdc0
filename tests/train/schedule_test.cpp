#include "qact/train/schedule.h"

#include <gtest/gtest.h>

namespace qact::train {
namespace {

TrainConfig scheduled(const std::string& scheduler, int64_t epochs) {
  TrainConfig config;
  config.lr = 0.5;
  config.lr_scheduler = scheduler;
  config.epochs = epochs;
  return config;
}

// What Python's torch.optim.lr_scheduler gives for the same settings.
TEST(Schedule, OneCycleIsPythons) {
  const double ten[] = {0.02,        0.26,        0.5,           0.475242316,   0.405872827,
                        0.305631011, 0.194370989, 0.09412917303, 0.02475968399, 2e-06};
  const double seven[] = {0.02,         0.4902783137,  0.4595221881, 0.3363419182,
                          0.1788693879, 0.04964839595, 2e-06};
  const Schedule of_ten(scheduled("onecycle", 5), 2), of_seven(scheduled("onecycle", 7), 1);
  for (int64_t i = 0; i < 10; ++i) EXPECT_NEAR(of_ten.lr(i / 2, i % 2), ten[i], 1e-9) << i;
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(of_seven.lr(i, 0), seven[i], 1e-9) << i;
}

TEST(Schedule, OneCycleOfOneStepIsAtTheTop) {
  EXPECT_DOUBLE_EQ(Schedule(scheduled("onecycle", 1), 1).lr(0, 0), 0.5);
}

TEST(Schedule, CosineIsPythons) {
  const double expected[] = {0.5, 0.4522542486, 0.3272542486, 0.1727457514, 0.04774575141};
  const Schedule schedule(scheduled("cosine", 5), 3);
  for (int64_t e = 0; e < 5; ++e) {
    for (int64_t s = 0; s < 3; ++s) EXPECT_NEAR(schedule.lr(e, s), expected[e], 1e-9);
  }
}

TEST(Schedule, StepFallsAfterItsEpochs) {
  TrainConfig config = scheduled("step", 6);
  config.lr_steps = {2, 3, 5};
  config.lr_gamma = 0.1;
  const Schedule schedule(config, 1);
  const double expected[] = {0.5, 0.5, 0.05, 0.005, 0.005, 0.0005};
  for (int64_t e = 0; e < 6; ++e) EXPECT_NEAR(schedule.lr(e, 0), expected[e], 1e-12) << e;
}

TEST(Schedule, PlateauIsPythonsAndGoesOnFromItsState) {
  const double accuracies[] = {.1, .2, .205, .21, .2101, .22, .3, .3, .3, .3, .3,
                               .3, .3, .3,   .3,  .3,    .3,  .4, .3, .3, .3, .3};
  const double expected[] = {.5,  .5,  .5,   .5,   .5,   .5,   .5,   .5,   .5,   .05,  .05,
                             .05, .05, .005, .005, .005, .005, .005, .005, .005, .001, .001};
  TrainConfig config = scheduled("plateau", 100);
  config.patience = 2;
  config.cooldown = 1;
  config.threshold = 0.01;
  config.min_lr = 1e-3;
  Schedule schedule(config, 1);
  for (size_t i = 0; i < std::size(accuracies); ++i) {
    schedule.end_epoch(accuracies[i]);
    EXPECT_NEAR(schedule.lr(static_cast<int64_t>(i), 0), expected[i], 1e-12) << i;
    Schedule other(config, 1);
    other.load(schedule.state());
    schedule = other;
  }
}

TEST(Schedule, EarlyStoppingWaitsForARise) {
  TrainConfig config = scheduled("constant", 100);
  config.early_stopping = 0.1;
  config.early_stopping_patience = 2;
  Schedule schedule(config, 1);
  for (const double accuracy : {0.5, 0.55, 0.59, 0.61, 0.65, 0.7}) {
    schedule.end_epoch(accuracy);
    EXPECT_FALSE(schedule.exhausted()) << accuracy;
  }
  schedule.end_epoch(0.7);
  EXPECT_TRUE(schedule.exhausted());
}

}  // namespace
}  // namespace qact::train
