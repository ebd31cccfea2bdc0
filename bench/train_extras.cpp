// What else training on a GPU costs: batches from the loader, memory, the watershed loss.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StreamGuard.h>

#include <numeric>

#include "bench/training.h"

namespace qact::bench {
namespace {

// Steps of a run, whose batches come from the loader, next to those with a batch that is there.
void loader_share(torch::Device device, const Settings& settings, Report& report) {
  constexpr int64_t kBatch = 128, kImages = 50000;
  constexpr int kWorkers = 4, kSteps = 100;
  const image::Size size{32, 32, 3};
  const data::Split split =
      data::make_split(size, 10, std::vector<uint8_t>(kImages * size.values(), 127),
                       std::vector<int64_t>(kImages, 0));
  std::vector<int64_t> order(kImages);
  std::iota(order.begin(), order.end(), 0);
  train::PrefetchingLoader loader(split,
                                  {.batch_size = kBatch,
                                   .drop_last = true,
                                   .workers = kWorkers,
                                   .augmentation = {.pad = 4, .flip = true},
                                   .normalisation = {{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}}},
                                  device);
  const c10::StreamGuard own_stream(train::GraphedNetwork::side_stream(device));
  for (const bool fast : {false, true}) {
    Training training("resnet18", {.activation = "relu"}, kBatch, device,
                      {fast ? "bfloat16" : "float32", "", fast, fast});
    training.capture();
    const auto timed = [&](const std::function<train::Batch()>& next) {
      return std::vector<double>{gpu_milliseconds(kSteps, [&] { training.step(next()); })};
    };
    const auto times = interleave({[&] { return timed([&] { return training.cached(); }); },
                                   [&] {
                                     loader.start(0, order, 0);
                                     return timed([&] { return loader.next().value(); });
                                   }},
                                  settings.repeats);
    char line[160];
    std::snprintf(
        line, sizeof line,
        "         resnet18 relu %s, batch %lld: %.3f ms with a cached batch, %.3f from the "
        "loader (%d workers): %.1f%% of the cached speed",
        fast ? "bfloat16 channels_last" : "float32", static_cast<long long>(kBatch), times[0][0],
        times[1][0], kWorkers, 100 * times[0][0] / times[1][0]);
    report.say(line);
  }
}

// What --checkpoint-activations saves.
void peak_memory(torch::Device device, Report& report) {
  constexpr int64_t kBatch = 1024;
  auto* const allocator = c10::getDeviceAllocator(device.type());
  for (const char* activation : {"relu", "qact"}) {
    double bytes[2];
    for (const bool checkpoint : {false, true}) {
      const Precision plain{"float32", "contiguous", false, false};
      Training training("resnet18", {.activation = activation}, kBatch, device, plain);
      if (checkpoint) training.checkpoint_activations();
      torch::cuda::synchronize();
      allocator->resetPeakStats(0);
      training.step();
      torch::cuda::synchronize();
      bytes[checkpoint] = static_cast<double>(allocator->getDeviceStats(0).allocated_bytes[0].peak);
    }
    char line[160];
    std::snprintf(line, sizeof line,
                  "         resnet18 %s, batch %lld: peak memory %.2f GiB, %.2f with activations "
                  "checkpointed (%.2f)",
                  activation, static_cast<long long>(kBatch), bytes[0] / 0x1p30, bytes[1] / 0x1p30,
                  bytes[1] / bytes[0]);
    report.say(line);
  }
}

// What the watershed loss adds to a step at batch 512 with 512 features.
void watershed_share(torch::Device device, const Settings& settings, Report& report) {
  constexpr int64_t kBatch = 512, kFeatures = 512, kClasses = 10;
  const losses::Loss loss = losses::make("watershed");
  torch::manual_seed(3);
  const torch::Tensor labels = torch::arange(kBatch).remainder(kClasses).to(device);
  const torch::Tensor logits = torch::zeros({kBatch, kClasses}, device);
  const torch::Tensor embedding = torch::randn({kBatch, kFeatures}, device).requires_grad_(true);
  const auto timed = [&] {
    base::Random random(0, 0);
    return std::vector<double>{
        gpu_milliseconds(10, [&] { loss.value({embedding, logits, labels}, random).backward(); })};
  };
  const c10::StreamGuard own_stream(train::GraphedNetwork::side_stream(device));
  Training step("resnet18", {}, kBatch, device, {"float32", "contiguous", false, false});
  step.capture();
  const auto times = interleave({timed, [&] { return step.timed(); }}, settings.repeats);
  char line[120];
  std::snprintf(line, sizeof line,
                "         watershed at batch 512: %.3f ms, %.1f%% of a ResNet18 step of %.3f ms",
                times[0][0], 100 * times[0][0] / times[1][0], times[1][0]);
  report.say(line);
}

}  // namespace

void train_step_extras(const Settings& settings, Report& report) {
  if (!torch::cuda::is_available()) return;
  const torch::Device device = fast_gpu();
  loader_share(device, settings, report);
  peak_memory(device, report);
  watershed_share(device, settings, report);
}

}  // namespace qact::bench
