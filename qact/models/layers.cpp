#include "qact/models/layers.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/normalization.h>

#include "qact/nn/batch_norm.h"

namespace qact::models {

using torch::nn::AnyModule;

AnyModule register_layer(torch::nn::Module& parent, const std::string& name, AnyModule layer) {
  parent.register_module(name, layer.ptr());
  return layer;
}

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel_size, int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel_size)
                               .stride(stride)
                               .padding(kernel_size / 2)
                               .bias(false));
}

AnyModule make_norm(const std::string& name, int64_t channels) {
  constexpr int64_t kGroups = 8;
  if (name == "batch") return AnyModule(nn::BatchNorm(channels));
  TORCH_CHECK(name == "group", "[models] expected the norm batch or group, got '", name, "'");
  TORCH_CHECK(channels % kGroups == 0, "[models] expected a multiple of ", kGroups,
              " channels for the norm group, got ", channels, ": this network cannot have it");
  return AnyModule(torch::nn::GroupNorm(kGroups, channels));
}

void initialise_convolutions(torch::nn::Module& network) {
  for (const auto& module : network.modules(/*include_self=*/false)) {
    if (auto* layer = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

}  // namespace qact::models
