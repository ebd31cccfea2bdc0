// What is promised about threads: a run repeats for the same number of them, which is part of the
// run, and evaluation does not depend on them at all.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/run/evaluate_folder.h"
#include "tests/run/message.h"

namespace qact::run {
namespace {

class TorchThreads {
 public:
  explicit TorchThreads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~TorchThreads() { at::set_num_threads(before_); }

 private:
  int before_;
};

std::string bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Threads, ARunOfTwoIsResumedBitForBitAndWithTwoOnly) {
  const TrainFolder folder;
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
  EXPECT_EQ(bytes(folder.run("parts").model()), bytes(folder.run("whole").model()));
  EXPECT_EQ(bytes(folder.run("parts").state()), bytes(folder.run("whole").state()));
}

// Jobs run the network on one thread each, whatever torch is set to.
TEST(Threads, OfTorchDoNotChangeAnEvaluation) {
  const EvaluateFolder folder;
  EvaluateOptions options;
  options.distortions = {"brightness"};
  options.severities = {0, 5};
  options.modes = {"tracked", "batch"};
  options.inference.batch_size = 20;
  options.command = [](const EvaluateOptions&) { return "qact eval"; };
  std::string alone;
  for (const int count : {1, 3}) {
    const TorchThreads threads(count);
    options.threads = count;
    std::filesystem::remove(folder.run("run").results());
    evaluate(folder.run("run"), options);
    if (count == 1) alone = bytes(folder.run("run").results());
    EXPECT_FALSE(alone.empty());
    EXPECT_EQ(bytes(folder.run("run").results()), alone);
  }
}

}  // namespace
}  // namespace qact::run
