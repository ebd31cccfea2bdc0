// Ranks meet in a store that has what earlier attempts left.
#include "qact/dist/meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "tests/base/message.h"

namespace qact::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSize = 4;

struct Met {
  int64_t number = 0;
  bool restarted = false;
};

// All ranks at once, in this order; `failed` of them count a restart.
std::vector<Met> meet(const Store& shared, const std::vector<int>& order, int failed = 0) {
  std::vector<Met> met(order.size());
  {
    std::vector<std::jthread> ranks;
    for (const int rank : order) {
      ranks.emplace_back([&, rank] {
        const Attempt attempt = join_attempt(shared, rank, seconds(30));
        const bool restarted =
            wait_for_all(shared, attempt, rank, kSize, rank < failed, seconds(30));
        met[rank] = {attempt.number, restarted};
      });
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  return met;
}

// What a rank leaves that ends before all have met.
void leave_early(const Store& shared, int rank) {
  try {
    const Attempt attempt = join_attempt(shared, rank, milliseconds(10));
    wait_for_all(shared, attempt, rank, kSize, false, milliseconds(10));
  } catch (const std::exception&) {
    return;
  }
}

TEST(Meeting, AgreesOnAnAttemptWhateverAnEarlierOneLeft) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    const Store shared = c10::make_intrusive<c10d::HashStore>();
    std::vector<int> order = {0, 1, 2, 3};
    int64_t begun = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      // Some came, and then all were ended.
      for (int rank = 0; rank < kSize; ++rank) {
        if (random() % 2 == 0) continue;
        leave_early(shared, rank);
        begun += rank == 0;
      }
      std::shuffle(order.begin(), order.end(), random);
      begun += 1;
      for (const Met& met : meet(shared, order)) {
        EXPECT_EQ(met.number, begun);
        EXPECT_EQ(met.restarted, begun > 1);
      }
    }
  }
}

// As on two machines, where the agent that saw no failure of its own does not count.
TEST(Meeting, KnowsARestartThatOneRankCounts) {
  for (int failed = 0; failed <= kSize; ++failed) {
    const Store shared = c10::make_intrusive<c10d::HashStore>();
    for (const Met& met : meet(shared, {3, 1, 0, 2}, failed)) {
      EXPECT_EQ(met.number, 1);
      EXPECT_EQ(met.restarted, failed > 0);
    }
  }
}

TEST(Meeting, NamesTheRankThatDoesNotCome) {
  const Store shared = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> said(kSize);
  {
    std::vector<std::jthread> ranks;
    for (const int rank : {0, 1, 3}) {
      ranks.emplace_back([&, rank] {
        said[rank] = message_of([&] {
          const Attempt attempt = join_attempt(shared, rank, seconds(1));
          wait_for_all(shared, attempt, rank, kSize, false, seconds(1));
        });
      });
    }
  }
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(said[rank], "[dist] expected 4 ranks to meet within 1 seconds, got no rank 2");
  }
  EXPECT_NE(message_of([&] { join_attempt(shared, 1, milliseconds(50)); }).find("got no rank 0"),
            std::string::npos);
}

}  // namespace
}  // namespace qact::dist
