// A run repeats bit for bit for the same number of threads, which is therefore part of the run.
#include <gtest/gtest.h>

#include "tests/base/message.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

TEST(Threads, ARunOfTwoIsResumedBitForBitAndWithTwoOnly) {
  const TrainingFixture folder;
  TrainConfig config = folder.config();
  config.threads = 2;
  config.epochs = 1;
  train(config, folder.run("whole"), /*resume=*/false);
  int calls = 2;
  EXPECT_TRUE(train(config, folder.run("parts"), /*resume=*/false, stop_after(&calls)).interrupted);
  TrainConfig other = config;
  other.threads = 1;
  expect_in("expected --threads as the run began, 2, got 1",
            message_of([&] { train(other, folder.run("parts"), /*resume=*/true); }));
  train(config, folder.run("parts"), /*resume=*/true);
  EXPECT_EQ(contents(folder.run("parts").model()), contents(folder.run("whole").model()));
  EXPECT_EQ(contents(folder.run("parts").state()), contents(folder.run("whole").state()));
}

}  // namespace
}  // namespace qact::train
