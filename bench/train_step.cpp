// A training step of a whole network, next to the same network with ReLU, and with BatchNorm +
// ReLU where QAct is: ResNet18 on a GPU, where there is one, LeNet on the CPU.
#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "bench/bench.h"
#include "qact/losses/loss.h"
#include "qact/models/autocast.h"
#include "qact/models/network.h"
#include "qact/run/optimiser.h"
#include "qact/run/recorded_network.h"
#include "qact/run/training_data.h"

namespace qact::bench {
namespace {

struct Precision {
  const char *dtype, *layout;
  bool mixed, channels_last;
};

class Training {
 public:
  Training(const std::string& model, const models::Options& options, int64_t batch,
           torch::Device device, const Precision& precision)
      : precision_(precision), device_(device), network_(make(model, options, device)) {
    torch::manual_seed(2);
    const int64_t side = options.image_size;
    cached_ = {torch::randn({batch, options.channels, side, side}).to(device),
               torch::randint(options.classes, {batch}).to(device)};
    if (precision.channels_last) network_->use_channels_last();
    optimiser_ = std::make_unique<run::Optimiser>(run::TrainConfig(), *network_);
    if (!std::isfinite(step().item<double>())) {
      throw std::runtime_error("[train_step] expected a finite loss, got another");
    }
  }

  const run::Batch& cached() const { return cached_; }
  void checkpoint_activations() { network_->checkpoint_activations(); }

  // As `qact train` does on a GPU.
  void record() {
    for (int i = 0; i < 3; ++i) step();
    optimiser_->zero_grad();
    recorded_.emplace(cached_.images, [&](const torch::Tensor& x) { return forward(x); });
  }

  torch::Tensor step() { return step(cached_); }

  torch::Tensor step(const run::Batch& batch) {
    if (!recorded_) optimiser_->zero_grad();
    const models::Output output =
        recorded_ ? recorded_->forward(batch.images) : forward(batch.images);
    core::Random random(0, 0);
    const torch::Tensor loss = loss_.value({output.embedding, output.logits, batch.labels}, random);
    loss.backward();
    if (recorded_) recorded_->backward();
    optimiser_->step(1e-3);
    return loss;
  }

  // Milliseconds of a step, and of what the host did of it; on a GPU of several in a row, as
  // a run has them.
  std::vector<double> timed() {
    const int steps = device_.is_cuda() ? 10 : 1;
    double host = 0;
    const double ms = milliseconds_of([&] {
      host = milliseconds_of([&] {
        for (int i = 0; i < steps; ++i) step();
      });
      if (device_.is_cuda()) torch::cuda::synchronize();
    });
    return {ms / steps, host / steps};
  }

 private:
  static std::shared_ptr<models::Network> make(const std::string& model,
                                               const models::Options& options,
                                               torch::Device device) {
    torch::manual_seed(1);
    const auto network = models::make(model, options);
    network->to(device);
    return network;
  }

  models::Output forward(const torch::Tensor& images) {
    const models::Autocast autocast(device_.type(), precision_.mixed);
    return network_->forward(images);
  }

  const Precision precision_;
  const torch::Device device_;
  const std::shared_ptr<models::Network> network_;
  const losses::Loss loss_ = losses::make("cross-entropy");
  run::Batch cached_;
  std::unique_ptr<run::Optimiser> optimiser_;
  std::optional<run::RecordedNetwork> recorded_;
};

void compare(const std::string& model, models::Options options, int64_t batch, torch::Device device,
             const Precision& precision, int repeats, Report& report) {
  const auto training = [&](const char* activation) {
    options.activation = activation;
    auto made = std::make_shared<Training>(model, options, batch, device, precision);
    if (device.is_cuda()) made->record();
    return [made] { return made->timed(); };
  };
  const auto times = interleave({training("qact"), training("relu"), training("bn-relu")}, repeats);
  const std::string pass = model + " " + options.placement;
  const char* peers[] = {"ReLU", "BatchNorm + ReLU"};
  for (int peer = 0; peer < 2; ++peer) {
    char note[80];
    std::snprintf(note, sizeof note, "%s; the host worked %.2f and %.2f ms", peers[peer],
                  times[0][1], times[1 + peer][1]);
    report.add({"train_step",
                {batch, options.channels, options.image_size, options.image_size},
                precision.dtype,
                precision.layout,
                pass,
                times[0][0],
                peers[peer],
                times[1 + peer][0],
                note,
                device.is_cuda() ? "cuda" : "cpu"});
  }
}

// With the settings of `qact train`.
torch::Device fast_gpu() {
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setBenchmarkCuDNN(true);
  return {torch::kCUDA};
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
    core::Random random(0, 0);
    return std::vector<double>{milliseconds_of([&] {
                                 for (int i = 0; i < 10; ++i)
                                   loss.value({embedding, logits, labels}, random).backward();
                                 torch::cuda::synchronize();
                               }) /
                               10};
  };
  const c10::StreamGuard own_stream(run::RecordedNetwork::stream(device));
  Training step("resnet18", {}, kBatch, device, {"float32", "contiguous", false, false});
  step.record();
  const auto times = interleave({timed, [&] { return step.timed(); }}, settings.repeats);
  char line[120];
  std::snprintf(line, sizeof line,
                "         watershed at batch 512: %.3f ms, %.1f%% of a ResNet18 step of %.3f ms",
                times[0][0], 100 * times[0][0] / times[1][0], times[1][0]);
  report.say(line);
}

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
  run::Feed feed(split,
                 {.batch_size = kBatch,
                  .drop_last = true,
                  .workers = kWorkers,
                  .augmentation = {.pad = 4, .flip = true},
                  .normalisation = {{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}}},
                 device);
  const c10::StreamGuard own_stream(run::RecordedNetwork::stream(device));
  for (const bool fast : {false, true}) {
    Training training("resnet18", {.activation = "relu"}, kBatch, device,
                      {fast ? "bfloat16" : "float32", "", fast, fast});
    training.record();
    const auto timed = [&](const std::function<run::Batch()>& next) {
      return std::vector<double>{milliseconds_of([&] {
                                   for (int i = 0; i < kSteps; ++i) training.step(next());
                                   torch::cuda::synchronize();
                                 }) /
                                 kSteps};
    };
    const auto times = interleave({[&] { return timed([&] { return training.cached(); }); },
                                   [&] {
                                     feed.start(0, order, 0);
                                     return timed([&] { return feed.next().value(); });
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

void on_gpu(const Settings& settings, Report& report) {
  const torch::Device device = fast_gpu();
  const c10::StreamGuard own_stream(run::RecordedNetwork::stream(device));
  const Precision precisions[] = {{"float32", "contiguous", false, false},
                                  {"bfloat16", "contiguous", true, false},
                                  {"bfloat16", "channels_last", true, true}};
  for (const int64_t batch : {128, 512}) {
    for (const Precision& precision : precisions) {
      for (const char* placement : {"reference", "early"}) {
        compare("resnet18", {.placement = placement}, batch, device, precision, settings.repeats,
                report);
      }
    }
  }
}

}  // namespace

void train_step_extras(const Settings& settings, Report& report) {
  if (!torch::cuda::is_available()) return;
  const torch::Device device = fast_gpu();
  loader_share(device, settings, report);
  peak_memory(device, report);
  watershed_share(device, settings, report);
}

void train_step(const Settings& settings, Report& report) {
  if (torch::cuda::is_available()) on_gpu(settings, report);
  compare("lenet", {.channels = 1, .image_size = 28}, 128, torch::kCPU,
          {"float32", "contiguous", false, false}, settings.repeats, report);
}

}  // namespace qact::bench
