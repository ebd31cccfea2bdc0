// Evaluation does not depend on the number of threads.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

class TorchThreads {
 public:
  explicit TorchThreads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~TorchThreads() { at::set_num_threads(before_); }

 private:
  int before_;
};

// Jobs run the network on one thread each, whatever torch is set to.
TEST(Threads, OfTorchDoNotChangeAnEvaluation) {
  const EvaluationFixture folder;
  EvaluateOptions options;
  options.corruptions = {"brightness"};
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
    if (count == 1) alone = train::contents(folder.run("run").results());
    EXPECT_FALSE(alone.empty());
    EXPECT_EQ(train::contents(folder.run("run").results()), alone);
  }
}

}  // namespace
}  // namespace qact::eval
