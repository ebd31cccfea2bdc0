// Training with AugMix's consistency loss, against passes made one by one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "qact/data/augment.h"
#include "qact/train/training_data.h"
#include "tests/train/training_fixture.h"

namespace qact::train {
namespace {

// One step on all training images, whose loss is that of the first weights.
TrainConfig one_step(const TrainingFixture& scratch, const std::string& activation) {
  TrainConfig config = scratch.config();
  config.model = "lenet";
  config.activation = activation;
  config.augment = "augmix";
  config.jsd = 12;
  config.epochs = 1;
  config.batch_size = 72;
  return resolved(config);
}

// -log p of the clean images' labels, and the divergence of the three views, in double.
double plain_loss(const std::vector<torch::Tensor>& logits, const torch::Tensor& labels,
                  double weight) {
  double cross_entropy = 0, divergence = 0;
  const int64_t images = labels.size(0);
  for (int64_t b = 0; b < images; ++b) {
    std::vector<torch::Tensor> p;
    for (const torch::Tensor& view : logits) {
      const torch::Tensor e = view[b].detach().to(torch::kDouble).exp();
      p.push_back(e / e.sum());
    }
    cross_entropy -= p[0][labels[b].item<int64_t>()].log().item<double>();
    const torch::Tensor mean = (p[0] + p[1] + p[2]) / 3;
    for (const torch::Tensor& q : p) divergence += (q * (q / mean).log()).sum().item<double>() / 3;
  }
  return (cross_entropy + weight * divergence) / static_cast<double>(images);
}

TEST(Consistency, RanksAndNormsEachViewInItsOwnContext) {
  const TrainingFixture scratch;
  for (const char* activation : {"relu", "qact"}) {
    const TrainConfig config = one_step(scratch, activation);
    train(config, scratch.run(activation), false);
    const double found =
        results::read_rows(scratch.run(activation).rows()).at(0)["loss"].get<double>();

    TrainingData data(config, false);
    data.start(0, 0);
    const Batch batch = data.next();
    ASSERT_EQ(batch.mixed_views.size(), 2u);
    torch::manual_seed(config.seed);
    const auto network = models::make("lenet", {.classes = 3,
                                                .channels = 1,
                                                .image_size = 16,
                                                .activation = activation,
                                                .placement = config.placement});
    std::vector<torch::Tensor> apart, together;
    for (const torch::Tensor& view : {batch.images, batch.mixed_views[0], batch.mixed_views[1]}) {
      apart.push_back(network->forward(view).logits);
    }
    EXPECT_NEAR(found, plain_loss(apart, batch.labels, 12), 1e-4);
    // One context for all views would give another loss.
    for (const torch::Tensor& view :
         network->forward(torch::cat({batch.images, batch.mixed_views[0], batch.mixed_views[1]}))
             .logits.chunk(3)) {
      together.push_back(view);
    }
    EXPECT_GT(std::abs(found - plain_loss(together, batch.labels, 12)), 1e-3);
  }
}

TEST(Consistency, ViewsAreTheImageAndTwoMixturesOfTheSameCrop) {
  const TrainingFixture scratch;
  TrainConfig config = one_step(scratch, "relu");
  TrainingData data(config, false);
  data.start(3, 0);
  const Batch batch = data.next();
  config.jsd = 0;
  config.augment = "crop-flip";
  TrainingData cropped(config, false);
  cropped.start(3, 0);
  const Batch clean = cropped.next();
  EXPECT_TRUE(torch::equal(batch.images, clean.images));
  EXPECT_TRUE(torch::equal(batch.labels, clean.labels));
  EXPECT_FALSE(torch::equal(batch.mixed_views[0], batch.images));
  EXPECT_FALSE(torch::equal(batch.mixed_views[0], batch.mixed_views[1]));
}

}  // namespace
}  // namespace qact::train
