#include "qact/base/jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/base/message.h"

namespace qact::base {
namespace {

// Jobs that would run for minutes, if nothing stopped them.
void run_long(const Progress& progress, std::atomic<int>* ended) {
  run_jobs(1000, 2, 1000, progress, [&](int64_t, Work& work) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    work.advance(1);
    ++*ended;
  });
}

TEST(Jobs, StopWhereProgressSaysSo) {
  std::atomic<int> ended = 0;
  EXPECT_THROW(run_long([](double) { return false; }, &ended), Interrupted);
  EXPECT_LT(ended, 10);
}

TEST(Jobs, StopWhereProgressThrows) {
  std::atomic<int> ended = 0;
  const auto progress = [](double) -> bool { throw std::runtime_error("a rank has ended"); };
  EXPECT_EQ(message_of([&] { run_long(progress, &ended); }), "a rank has ended");
  EXPECT_LT(ended, 10);
}

}  // namespace
}  // namespace qact::base
