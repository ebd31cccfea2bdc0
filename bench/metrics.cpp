// What a network's outputs are judged by, at the size of a test set of CIFAR: 10,000 images.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/bench.h"
#include "qact/eval/scores.h"
#include "qact/metrics/retrieval.h"
#include "tests/metrics/reference_retrieval.h"

namespace qact::bench {
namespace {

constexpr int64_t kOutputs = 10000, kClasses = 10;

// Embeddings about a point of each class.
torch::Tensor clouds(int64_t n, int64_t features) {
  torch::manual_seed(1);
  return torch::randn({kClasses, features}).repeat({n / kClasses, 1}) +
         2 * torch::randn({n, features});
}

std::vector<int64_t> labels_of(int64_t n) {
  std::vector<int64_t> labels(n);
  for (int64_t i = 0; i < n; ++i) labels[i] = i % kClasses;
  return labels;
}

void validate_retrieval(torch::Device device) {
  const torch::Tensor x = clouds(500, 64);
  const std::vector<int64_t> labels = labels_of(500);
  const double found = metrics::map_at_k(x.to(device), torch::tensor(labels), 100).map;
  const double plain = metrics::reference_map(x, labels, 100).map;
  if (std::abs(found - plain) > 1e-12) {
    throw std::runtime_error("[metrics] expected MAP@100 as in plain code, got another");
  }
}

void retrieval(int repeats, torch::Device device, Report& report) {
  validate_retrieval(device);
  const torch::Tensor x = clouds(kOutputs, 512).to(device),
                      labels = torch::tensor(labels_of(kOutputs));
  const double ms = interleave({[&]() -> std::vector<double> {
                                 return {milliseconds_of([&] { metrics::map_at_k(x, labels); })};
                               }},
                               repeats)[0][0];
  report.add({"metrics",
              {kOutputs, 512},
              "float32",
              "contiguous",
              "MAP@100",
              ms,
              "",
              0,
              "",
              device.is_cuda() ? "cuda" : "cpu"});
}

void scores(int repeats, Report& report) {
  const torch::Tensor table = clouds(kOutputs, kClasses).softmax(1).contiguous();
  const std::vector<int64_t> labels = labels_of(kOutputs);
  const metrics::Predictions p{
      {table.data_ptr<float>(), static_cast<size_t>(table.numel())}, labels, kClasses};
  const double ms = interleave({[&]() -> std::vector<double> {
                                 return {milliseconds_of([&] { eval::probability_scores(p); })};
                               }},
                               repeats)[0][0];
  report.add({"metrics",
              {kOutputs, kClasses},
              "float32",
              "contiguous",
              "scores",
              ms,
              "",
              0,
              "accuracy, its interval, calibration, likelihood"});
}

}  // namespace

void metrics_of_outputs(const Settings& settings, Report& report) {
  const int repeats = std::min(settings.repeats, 3);
  scores(settings.repeats, report);
  retrieval(repeats, torch::kCPU, report);
  if (torch::cuda::is_available()) retrieval(repeats, torch::kCUDA, report);
}

}  // namespace qact::bench
