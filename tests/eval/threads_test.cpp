// Evaluation does not depend on the number of threads.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/eval/quick_evaluation.h"

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

TEST(Threads, DoNotChangeTheFile) {
  const ScratchFolder scratch;
  const train::RunFolder folder = copy_of_run(scratch);
  EvaluateOptions options = quick_options();
  options.threads = 3;
  evaluate(folder, options);
  EXPECT_EQ(train::contents(folder.results()), expected_results());
}

// Rows as text, sorted.
std::vector<std::string> sorted_rows(const train::RunFolder& folder) {
  std::vector<std::string> lines;
  for (const results::Row& row : results::read_rows(folder.results())) lines.push_back(row.dump());
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Jobs share models: none sees what another job did to one.
TEST(Threads, AndTheOrderOfModesChangeNoRow) {
  const auto rows_of = [](int threads, bool diagnostics, std::vector<std::string> modes) {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    EvaluateOptions options = quick_options();
    options.corruptions = {"brightness"};
    options.severities = {0, 5};
    options.modes = std::move(modes);
    options.inference.copies = 2;
    options.threads = threads;
    options.diagnostics = diagnostics;
    options.diagnostic_samples = 12;
    evaluate(folder, options);
    return sorted_rows(folder);
  };
  const std::vector<std::string> modes = inference_modes(), reversed(modes.rbegin(), modes.rend());
  const std::vector<std::string> expected = rows_of(1, false, modes);
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(rows_of(threads, false, reversed), expected) << threads;
  }
  // t-SNE takes its time.
  EXPECT_EQ(rows_of(1, true, {"stream", "dataset"}), rows_of(3, true, {"dataset", "stream"}));
}

}  // namespace
}  // namespace qact::eval
