// A training step and inference of a whole network with QAct, next to the same network with ReLU,
// and with the controls where QAct is: BatchNorm + ReLU, and in the placement split half
// InstanceNorm, half BatchNorm, then ReLU. ResNet18 on a GPU, where there is one, LeNet on the CPU.
#include <c10/core/StreamGuard.h>

#include "bench/training.h"

namespace qact::bench {
namespace {

struct Peer {
  const char *activation, *name;
};

std::vector<Peer> peers(const std::string& placement) {
  std::vector<Peer> all = {{"relu", "ReLU"}, {"bn-relu", "BatchNorm + ReLU"}};
  if (placement == "split") all.push_back({"ibn-relu", "InstanceNorm/BatchNorm + ReLU"});
  return all;
}

void compare(const std::string& model, models::NetworkOptions options, int64_t batch,
             torch::Device device, const Precision& precision, int repeats, Report& report) {
  const std::vector<Peer> others = peers(options.placement);
  std::vector<std::shared_ptr<Training>> networks;
  const auto add = [&](const char* activation) {
    options.activation = activation;
    networks.push_back(std::make_shared<Training>(model, options, batch, device, precision));
    if (device.is_cuda()) networks.back()->capture();
  };
  add("qact");
  for (const Peer& peer : others) add(peer.activation);
  const auto time = [&](const char* what, const std::string& pass,
                        std::vector<double> (Training::*timed)()) {
    std::vector<Step> steps;
    for (const auto& network : networks) steps.push_back([=] { return ((*network).*timed)(); });
    const auto times = interleave(steps, repeats);
    for (size_t i = 0; i < others.size(); ++i) {
      char note[100];
      std::snprintf(note, sizeof note, "%s; the host worked %.2f and %.2f ms", others[i].name,
                    times[0][1], times[1 + i][1]);
      report.add({what,
                  {batch, options.channels, options.image_size, options.image_size},
                  precision.dtype,
                  precision.layout,
                  pass,
                  times[0][0],
                  others[i].name,
                  times[1 + i][0],
                  note,
                  device.is_cuda() ? "cuda" : "cpu"});
    }
  };
  const std::string name = model + " " + options.placement;
  time("train_step", name, &Training::timed);
  if (precision.mixed || precision.channels_last) return;  // `qact eval` has neither
  for (const auto& [mode, text] : {std::pair{nn::ContextMode::tracked, "tracked"},
                                   std::pair{nn::ContextMode::batch, "batch"}}) {
    for (const auto& network : networks) network->infer_in(mode);
    time("network", name + ", " + text, &Training::timed_inference);
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
      for (const char* placement : {"reference", "early", "split"}) {
        compare("resnet18", {.placement = placement}, batch, device, precision, settings.repeats,
                report);
      }
    }
  }
}

}  // namespace

void train_step(const Settings& settings, Report& report) {
  if (torch::cuda::is_available()) on_gpu(settings, report);
  for (const char* placement : {"reference", "split"}) {
    compare("lenet", {.channels = 1, .image_size = 28, .placement = placement}, 128, torch::kCPU,
            {"float32", "contiguous", false, false}, settings.repeats, report);
  }
}

}  // namespace qact::bench
