// What ranks tell each other, against what one process knows.
#include "qact/dist/world.h"

#include <gtest/gtest.h>

#include "tests/base/message.h"
#include "tests/dist/rank_threads.h"

namespace qact::dist {
namespace {

TEST(World, SumsAndAgrees) {
  for (const int size : {1, 2, 3, 4}) {
    run_ranks(size, [&](const World& world) {
      const double expected = size * (size - 1) / 2.0;
      EXPECT_EQ(world.sum({static_cast<double>(world.rank()), 1}),
                (std::vector<double>{expected, static_cast<double>(size)}));
      EXPECT_FALSE(world.any(false));
      EXPECT_TRUE(world.any(world.rank() == size - 1));
      world.barrier();
    });
  }
}

TEST(World, BroadcastsTheFirstRanksValues) {
  run_ranks(3, [](const World& world) {
    const torch::Tensor a = torch::full({2, 3}, world.rank());
    const torch::Tensor b = torch::full({2, 3, 4, 4}, world.rank(), torch::kDouble)
                                .to(torch::MemoryFormat::ChannelsLast);
    world.broadcast({a, b});
    EXPECT_TRUE(a.eq(0).all().item<bool>());
    EXPECT_TRUE(b.eq(0).all().item<bool>());
  });
}

// Rank r has `counts[r]` rows of the value r.
TEST(World, GathersUnequalNumbersOfRows) {
  const std::vector<std::vector<int64_t>> cases = {{3, 1}, {0, 2}, {2, 0, 5, 1}, {0, 0}};
  for (const std::vector<int64_t>& counts : cases) {
    run_ranks(static_cast<int>(counts.size()), [&](const World& world) {
      const torch::Tensor rows = torch::full({counts[world.rank()], 2}, world.rank(), torch::kLong);
      std::vector<torch::Tensor> expected;
      for (size_t r = 0; r < counts.size(); ++r) {
        expected.push_back(torch::full({counts[r], 2}, static_cast<int64_t>(r), torch::kLong));
      }
      EXPECT_TRUE(torch::equal(world.gather_rows(rows), torch::cat(expected)));
    });
  }
}

TEST(World, GathersWithGradients) {
  run_ranks(3, [](const World& world) {
    const torch::Tensor rows =
        torch::full({1 + world.rank(), 2}, 1.0 + world.rank(), torch::kDouble).requires_grad_();
    const torch::Tensor all = gather_rows_with_gradient(world, rows);
    EXPECT_EQ(all.size(0), 6);
    all.square().sum().backward();
    EXPECT_TRUE(torch::equal(rows.grad(), 2 * rows.detach()));
  });
}

TEST(World, PassesTextsOnAndNamesTheRankThatDiffers) {
  run_ranks(3, [](const World& world) {
    const std::string mine(world.rank() * 1000, 'x');
    const std::vector<std::string> all = world.gather_texts(mine);
    ASSERT_EQ(all.size(), 3u);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(all[r].size(), r * 1000u);
    expect_same(world, "--lr", "0.1");
    const std::string message =
        message_of([&] { expect_same(world, "--lr", world.rank() == 2 ? "0.2" : "0.1"); });
    EXPECT_EQ(
        message,
        "[dist] expected --lr to be the same on all ranks, got 0.1 on rank 0 and 0.2 on rank 2");
    const auto told = [&](const std::string& data) {
      return message_of([&] { expect_same(world, {{"--lr", "0.1"}, {"--data", data}}); });
    };
    EXPECT_EQ(told("a"), kNothingThrown);
    EXPECT_EQ(told(world.rank() == 1 ? "" : "a"),
              "[dist] expected --data to be the same on all ranks, got a on rank 0 and none on "
              "rank 1");
  });
}

TEST(World, TakesAMessageOnce) {
  run_ranks(2, [](const World& world) {
    if (!world.is_first()) world.put("name", "text");
    world.barrier();
    if (!world.is_first()) return;
    EXPECT_EQ(world.take("name"), "text");
    EXPECT_FALSE(world.take("name"));
  });
}

}  // namespace
}  // namespace qact::dist
