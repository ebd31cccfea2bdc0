// The batches of several ranks, put together, against those of one process.
#include <gtest/gtest.h>

#include "qact/train/training_data.h"
#include "tests/dist/rank_threads.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

struct Seen {
  std::vector<torch::Tensor> images, labels;
};

Seen batches(TrainingData& data, const dist::World& world) {
  Seen seen;
  const auto add = [&](const Batch& batch) {
    std::vector<torch::Tensor> views = batch.mixed_views;
    views.insert(views.begin(), batch.images);
    for (const torch::Tensor& view : views) seen.images.push_back(world.gather_rows(view).clone());
    seen.labels.push_back(world.gather_rows(batch.labels).clone());
    EXPECT_EQ(batch.total, seen.labels.back().size(0));
    const int64_t share = batch.labels.size(0);
    EXPECT_TRUE(share == batch.total / world.size() || share == batch.total / world.size() + 1);
  };
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    data.start(epoch, epoch);
    for (int64_t i = epoch; i < data.batches(); ++i) add(data.next());
  }
  PrefetchingLoader& validation = data.evaluation_loader(TrainingData::Subset::validation);
  while (const std::optional<Batch> batch = validation.next()) add(*batch);
  return seen;
}

void expect_equal(const std::vector<torch::Tensor>& got, const std::vector<torch::Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(torch::equal(got[i], want[i])) << i;
}

TEST(Batches, AreTheSameForAnyNumberOfRanks) {
  const TrainingFixture fixture;
  for (const bool balanced : {false, true}) {
    TrainConfig config = fixture.config();
    config.augment = "augmix";
    config.jsd = balanced ? 0 : 12;
    config.workers = 2;
    TrainingData alone(config, balanced);
    const Seen expected = batches(alone, {});
    for (const int ranks : {2, 3, 4}) {
      dist::run_ranks(ranks, [&](const dist::World& world) {
        TrainingData data(config, balanced, world);
        const Seen seen = batches(data, world);
        expect_equal(seen.images, expected.images);
        expect_equal(seen.labels, expected.labels);
      });
    }
  }
}

TEST(Batches, SharesOfBalancedBatchesAreBalanced) {
  const TrainingFixture fixture;
  dist::run_ranks(2, [&](const dist::World& world) {
    TrainingData data(fixture.config(), true, world);
    data.start(0, 0);
    for (int64_t i = 0; i < data.batches(); ++i) {
      const torch::Tensor counts = data.next().labels.bincount({}, 3);
      EXPECT_TRUE(counts.eq(3).all().item<bool>()) << counts;
    }
  });
}

}  // namespace
}  // namespace qact::train
