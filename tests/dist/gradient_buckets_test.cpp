// One step of several ranks, in double, against the same step in one process.
#include "qact/dist/gradient_buckets.h"

#include <gtest/gtest.h>

#include <mutex>

#include "qact/models/network.h"
#include "tests/dist/rank_threads.h"

namespace qact::dist {
namespace {

constexpr int64_t kImages = 22;
constexpr int64_t kOneBucket = int64_t{1} << 40;

struct Example {
  torch::Tensor images, labels;
  // Rank r of `ranks` has [first(r), first(r + 1)).
  torch::Tensor share(const torch::Tensor& all, int rank, int ranks) const {
    const int64_t first = rank * kImages / ranks;
    return all.narrow(0, first, (rank + 1) * kImages / ranks - first);
  }
};

std::mutex random_lock;  // torch's default generator is that of all threads

const Example& example() {
  const std::scoped_lock lock(random_lock);
  static const Example made = [] {
    torch::manual_seed(3);
    return Example{torch::rand({kImages, 1, 28, 28}, torch::kDouble),
                   torch::randint(10, {kImages})};
  }();
  return made;
}

std::shared_ptr<models::Network> network_of(const std::string& activation,
                                            const std::string& norm) {
  const std::scoped_lock lock(random_lock);
  torch::manual_seed(1);
  const auto network = models::make(
      "lenet", {.channels = 1, .image_size = 28, .activation = activation, .norm = norm});
  network->to(torch::kDouble);
  network->train();
  return network;
}

// The loss of a share, weighted by its images.
torch::Tensor weighted_loss(models::Network& network, const Example& example, int rank, int ranks) {
  const torch::Tensor labels = example.share(example.labels, rank, ranks);
  const torch::Tensor loss = torch::nn::functional::cross_entropy(
      network.forward(example.share(example.images, rank, ranks)).logits, labels);
  return loss * (static_cast<double>(labels.size(0)) / kImages);
}

std::vector<torch::Tensor> gradients(const models::Network& network) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& p : network.parameters()) all.push_back(p.grad());
  return all;
}

// In one process: one share after the other, each a context of its own.
std::vector<torch::Tensor> expected_gradients(const std::string& activation,
                                              const std::string& norm, int shares) {
  const auto network = network_of(activation, norm);
  for (int i = 0; i < shares; ++i) weighted_loss(*network, example(), i, shares).backward();
  return gradients(*network);
}

void expect_close(const std::vector<torch::Tensor>& got, const std::vector<torch::Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), want[i].defined()) << i;
    if (!got[i].defined()) continue;
    const double norm = want[i].norm().item<double>();
    EXPECT_LE((got[i] - want[i]).norm().item<double>(), 1e-9 * std::max(norm, 1e-3)) << i;
  }
}

TEST(GradientBuckets, EqualThoseOfOneProcessWithTheWholeBatch) {
  const auto expected = expected_gradients("relu", "group", 1);
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int64_t bytes : {int64_t{1}, GradientBuckets::kBucketBytes, kOneBucket}) {
      run_ranks(ranks, [&](const World& world) {
        const auto network = network_of("relu", "group");
        GradientBuckets buckets(world, network->parameters(), bytes);
        EXPECT_EQ(buckets.buckets() == 1, bytes == kOneBucket);
        buckets.start();
        weighted_loss(*network, example(), world.rank(), world.size()).backward();
        EXPECT_EQ(buckets.started(), buckets.buckets());  // within the backward pass
        buckets.finish();
        expect_close(gradients(*network), expected);
      });
    }
  }
}

TEST(GradientBuckets, KeepContextsOfRanksApart) {
  for (const std::string activation : {"qact", "bn-relu"}) {
    const auto expected = expected_gradients(activation, "batch", 2);
    run_ranks(2, [&](const World& world) {
      const auto network = network_of(activation, "batch");
      GradientBuckets buckets(world, network->parameters(), 20000);
      buckets.start();
      weighted_loss(*network, example(), world.rank(), world.size()).backward();
      buckets.finish();
      expect_close(gradients(*network), expected);
    });
  }
}

TEST(GradientBuckets, AddUpBeforeTheLastBackwardPass) {
  const auto expected = expected_gradients("relu", "group", 1);
  run_ranks(2, [&](const World& world) {
    const auto network = network_of("relu", "group");
    GradientBuckets buckets(world, network->parameters());
    for (int step = 0; step < 2; ++step) {  // a second one finds all as the first
      for (const torch::Tensor& p : network->parameters()) p.mutable_grad().reset();
      for (int i = 0; i < 2; ++i) {
        if (i == 1) buckets.start();
        weighted_loss(*network, example(), world.rank() * 2 + i, 4).backward();
        EXPECT_EQ(buckets.started(), i == 0 ? 0 : buckets.buckets());
      }
      buckets.finish();
      expect_close(gradients(*network), expected);
    }
  });
}

TEST(GradientBuckets, LeaveAParameterWithoutAGradientAlone) {
  run_ranks(2, [](const World& world) {
    const torch::Tensor used = torch::ones({3}).requires_grad_();
    const torch::Tensor unused = torch::ones({2}).requires_grad_();
    GradientBuckets buckets(world, {used, unused});
    buckets.start();
    (used * (world.rank() + 1)).sum().backward();
    buckets.finish();
    EXPECT_TRUE(used.grad().eq(3).all().item<bool>());
    EXPECT_FALSE(unused.grad().defined());
  });
}

TEST(GradientBuckets, LetsGoOfTheParameters) {
  const torch::Tensor parameter = torch::ones({3}, torch::requires_grad());
  {
    GradientBuckets buckets(World(), {parameter});
    EXPECT_GT(parameter.use_count(), 1u);
  }
  EXPECT_EQ(parameter.use_count(), 1u);
  parameter.sum().backward();  // its hook has nothing left to do
}

}  // namespace
}  // namespace qact::dist
