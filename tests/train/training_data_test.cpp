#include "qact/train/training_data.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

TEST(RandomSplit, HasEachIndexOnce) {
  for (const auto& [count, share, expected] :
       {std::tuple<int64_t, double, size_t>{10, 0.2, 2}, {11, 0.2, 2}, {7, 0, 0}, {1, 0.5, 1}}) {
    const SplitIndices indices = random_split(count, share, 42);
    EXPECT_EQ(indices.validation.size(), expected);
    std::vector<int64_t> all = indices.train;
    all.insert(all.end(), indices.validation.begin(), indices.validation.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(static_cast<int64_t>(all.size()), count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(all[i], i);
  }
  EXPECT_EQ(random_split(100, 0.2, 42).validation, random_split(100, 0.2, 42).validation);
  EXPECT_NE(random_split(100, 0.2, 42).validation, random_split(100, 0.2, 43).validation);
}

// All batches of an epoch, one after the other.
torch::Tensor images_of(TrainingData& data, int64_t epoch, int64_t first = 0) {
  std::vector<torch::Tensor> images;
  data.start(epoch, first);
  for (int64_t b = first; b < data.batches(); ++b) images.push_back(data.next().images.clone());
  return torch::cat(images);
}

TEST(TrainingData, AnEpochIsTheSameFromAnyBatchOn) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.augment = "crop-flip";
  for (const bool balanced : {false, true}) {
    TrainingData data(config, balanced);
    const torch::Tensor whole = images_of(data, 5);
    for (int64_t first = 1; first < data.batches(); ++first) {
      EXPECT_TRUE(torch::equal(images_of(data, 5, first), whole.slice(0, first * 18)));
    }
    EXPECT_FALSE(torch::equal(images_of(data, 6), whole));
  }
}

TEST(TrainingData, BalancedBatchesHaveAsManyOfEachClass) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  config.batch_size = 17;
  config.classes_per_batch = 2;
  TrainingData data(config, true);
  EXPECT_EQ(data.batch_size(), 16);
  data.start(0, 0);
  for (int64_t b = 0; b < data.batches(); ++b) {
    const torch::Tensor counts = torch::bincount(data.next().labels, {}, 3);
    EXPECT_EQ(counts.max().item<int64_t>(), 8);
    EXPECT_EQ((counts == 8).sum().item<int64_t>(), 2);
  }
}

TEST(TrainingData, DithersWhereThatIsWanted) {
  const TrainingFixture scratch;
  TrainConfig config = scratch.config();
  const auto images = [&](const std::string& dither) {
    config.dither = dither;
    TrainingData data(config, false);
    EXPECT_EQ(data.dithered(), dither == "on") << dither;
    return std::pair(
        images_of(data, 0),
        data.evaluation_loader(TrainingData::Subset::validation).next()->images.clone());
  };
  const auto [plain, plain_validation] = images("off");
  const auto [dithered, validation] = images("on");
  EXPECT_TRUE(torch::equal(images("auto").first, plain));  // noise does not tie
  for (const torch::Tensor& noise : {dithered - plain, validation - plain_validation}) {
    EXPECT_GT(noise.abs().max().item<double>(), 0);
    // Half a grey level over the deviation, which is that of 100 levels or so.
    EXPECT_LT(noise.abs().max().item<double>(), 0.05);
  }
}

TEST(TrainingData, ValidationIsNeverTrainedOn) {
  const TrainingFixture scratch;
  TrainingData data(scratch.config(), false);
  EXPECT_EQ(data.images(), 72);
  const torch::Tensor train = images_of(data, 0).flatten(1);
  PrefetchingLoader& loader = data.evaluation_loader(TrainingData::Subset::validation);
  int64_t seen = 0;
  while (const auto batch = loader.next()) {
    seen += batch->labels.size(0);
    const torch::Tensor distances = torch::cdist(batch->images.flatten(1), train);
    EXPECT_GT(distances.min().item<double>(), 0.1);
  }
  EXPECT_EQ(seen, 18);
}

}  // namespace
}  // namespace qact::train
