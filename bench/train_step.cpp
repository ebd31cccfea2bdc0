// A training step of a whole network, next to the same network with ReLU, and with BatchNorm +
// ReLU where QAct is: ResNet18 on a GPU, where there is one, LeNet on the CPU.
#include <c10/core/StreamGuard.h>

#include "bench/training.h"

namespace qact::bench {
namespace {

void compare(const std::string& model, models::NetworkOptions options, int64_t batch,
             torch::Device device, const Precision& precision, int repeats, Report& report) {
  const auto training = [&](const char* activation) {
    options.activation = activation;
    auto made = std::make_shared<Training>(model, options, batch, device, precision);
    if (device.is_cuda()) made->capture();
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

void on_gpu(const Settings& settings, Report& report) {
  const torch::Device device = fast_gpu();
  const c10::StreamGuard own_stream(train::GraphedNetwork::side_stream(device));
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

void train_step(const Settings& settings, Report& report) {
  if (torch::cuda::is_available()) on_gpu(settings, report);
  compare("lenet", {.channels = 1, .image_size = 28}, 128, torch::kCPU,
          {"float32", "contiguous", false, false}, settings.repeats, report);
}

}  // namespace qact::bench
