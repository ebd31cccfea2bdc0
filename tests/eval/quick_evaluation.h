// A quick evaluation of a small run, and its results.
#pragma once

#include <filesystem>
#include <string>

#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {

inline EvaluateOptions quick_options() {
  EvaluateOptions options;
  options.corruptions = {"brightness", "tone"};
  options.severities = {0, 1, 5};
  options.inference.batch_size = 20;
  options.threads = 1;
  options.command = [](const EvaluateOptions&) { return "qact eval"; };
  return options;
}

// Trained once for all tests of the program.
inline const EvaluationFixture& trained_run() {
  static const EvaluationFixture folder;
  return folder;
}

// A copy of the trained run without results.
inline train::RunFolder copy_of_run(const ScratchFolder& scratch) {
  std::filesystem::copy(trained_run().run("run").folder, scratch.path / "run");
  std::filesystem::remove(scratch.path / "run" / "results.jsonl");
  return {scratch.path / "run"};
}

// The results.jsonl of quick_options(), never interrupted.
inline const std::string& expected_results() {
  static const std::string text = [] {
    const ScratchFolder scratch;
    const train::RunFolder folder = copy_of_run(scratch);
    evaluate(folder, quick_options());
    return train::contents(folder.results());
  }();
  return text;
}

}  // namespace qact::eval
