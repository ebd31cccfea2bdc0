// qact-bench: validates, then times, side by side with a peer in this one process; prints a
// table and writes it as JSON.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>

#include "bench/bench.h"

namespace {

struct Benchmark {
  const char* name;
  const char* about;
  void (*run)(const qact::bench::Settings&, qact::bench::Report&);
};

const Benchmark kBenchmarks[] = {
    {"layer", "the fused layer next to BatchNorm2d + ReLU", qact::bench::layer},
    {"scope", "the layer in scope image, all or half of it, next to InstanceNorm2d + ReLU",
     qact::bench::scope},
    {"inference", "the layer in its running context next to BatchNorm2d + ReLU in eval()",
     qact::bench::inference},
#ifdef QACT_USES_CUDA
    {"cuda", "the fused layer on a GPU, where there is one", qact::bench::layer_cuda},
#endif
    {"curve", "its cost per element as the context grows", qact::bench::curve},
    {"train_step", "a training step and inference of ResNet18 (GPU) and LeNet (CPU)",
     qact::bench::train_step},
    {"extras", "memory with activations checkpointed, the watershed loss (GPU)",
     qact::bench::train_step_extras},
    {"loader", "augmented images per second on one core", qact::bench::loader},
    {"corruption", "corruptions of images next to imagecorruptions", qact::bench::corruption},
    {"metrics", "MAP@100 and the scores of 10,000 outputs", qact::bench::metrics_of_outputs},
};

}  // namespace

int main(int argc, char** argv) {
  qact::bench::Settings settings;
  std::vector<std::string> only;
  std::string output = QACT_BENCH_OUTPUT;
  std::string names;
  for (const Benchmark& benchmark : kBenchmarks) {
    names += std::string("\n  ") + benchmark.name + ": " + benchmark.about;
  }
  CLI::App app("Times qact side by side with its peers.");
  app.add_option("--repeats", settings.repeats, "rounds; medians are reported")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", settings.threads, "torch's threads")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--output", output, "where the rows go, as JSON")->capture_default_str();
  app.add_option("--only", only, "run these alone; there are" + names);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const std::string& name : only) {
    const auto is_it = [&](const Benchmark& benchmark) { return name == benchmark.name; };
    if (std::none_of(std::begin(kBenchmarks), std::end(kBenchmarks), is_it)) {
      std::fprintf(stderr,
                   "qact-bench: expected --only to name a benchmark of this build, got %s%s\n",
                   name.c_str(), name == "cuda" ? ", which needs a build with CUDA kernels" : "");
      return 2;
    }
  }
  try {
    at::set_num_threads(settings.threads);
    std::printf("%d threads, medians of %d rounds\n", settings.threads, settings.repeats);
    qact::bench::Report report(settings);
    for (const Benchmark& benchmark : kBenchmarks) {
      if (only.empty() || std::count(only.begin(), only.end(), benchmark.name) > 0) {
        benchmark.run(settings, report);
      }
    }
    report.write(output);
    std::printf("wrote %s\n", output.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qact-bench: %s\n", error.what());
    return 1;
  }
}
