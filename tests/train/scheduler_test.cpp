#include "qact/train/scheduler.h"

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
TEST(LrScheduler, OneCycleIsPythons) {
  const double ten[] = {0.02,        0.26,        0.5,           0.475242316,   0.405872827,
                        0.305631011, 0.194370989, 0.09412917303, 0.02475968399, 2e-06};
  const double seven[] = {0.02,         0.4902783137,  0.4595221881, 0.3363419182,
                          0.1788693879, 0.04964839595, 2e-06};
  const LrScheduler of_ten(scheduled("onecycle", 5), 2), of_seven(scheduled("onecycle", 7), 1);
  for (int64_t i = 0; i < 10; ++i) EXPECT_NEAR(of_ten.lr(i / 2, i % 2), ten[i], 1e-9) << i;
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(of_seven.lr(i, 0), seven[i], 1e-9) << i;
}

TEST(LrScheduler, OneCycleOfOneStepIsAtTheTop) {
  EXPECT_DOUBLE_EQ(LrScheduler(scheduled("onecycle", 1), 1).lr(0, 0), 0.5);
}

TEST(LrScheduler, CosineIsPythons) {
  const double expected[] = {0.5, 0.4522542486, 0.3272542486, 0.1727457514, 0.04774575141};
  const LrScheduler scheduler(scheduled("cosine", 5), 3);
  for (int64_t e = 0; e < 5; ++e) {
    for (int64_t s = 0; s < 3; ++s) EXPECT_NEAR(scheduler.lr(e, s), expected[e], 1e-9);
  }
}

TEST(LrScheduler, StepFallsAfterItsEpochs) {
  TrainConfig config = scheduled("step", 6);
  config.lr_steps = {2, 3, 5};
  config.lr_gamma = 0.1;
  const LrScheduler scheduler(config, 1);
  const double expected[] = {0.5, 0.5, 0.05, 0.005, 0.005, 0.0005};
  for (int64_t e = 0; e < 6; ++e) EXPECT_NEAR(scheduler.lr(e, 0), expected[e], 1e-12) << e;
}

TEST(LrScheduler, PlateauIsPythonsAndResumes) {
  const double accuracies[] = {.1, .2, .205, .21, .2101, .22, .3, .3, .3, .3, .3,
                               .3, .3, .3,   .3,  .3,    .3,  .4, .3, .3, .3, .3};
  const double expected[] = {.5,  .5,  .5,   .5,   .5,   .5,   .5,   .5,   .5,   .05,  .05,
                             .05, .05, .005, .005, .005, .005, .005, .005, .005, .001, .001};
  TrainConfig config = scheduled("plateau", 100);
  config.patience = 2;
  config.cooldown = 1;
  config.threshold = 0.01;
  config.min_lr = 1e-3;
  LrScheduler scheduler(config, 1);
  for (size_t i = 0; i < std::size(accuracies); ++i) {
    scheduler.end_epoch(accuracies[i]);
    EXPECT_NEAR(scheduler.lr(static_cast<int64_t>(i), 0), expected[i], 1e-12) << i;
    LrScheduler other(config, 1);
    other.load_state_dict(scheduler.state_dict());
    scheduler = other;
  }
}

}  // namespace
}  // namespace qact::train
