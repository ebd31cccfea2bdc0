#include "qact/models/network.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "qact/models/blocks.h"
#include "qact/models/factories.h"
#include "qact/ops/checks.h"

namespace qact::models {
namespace {

struct Entry {
  const char* name;
  std::shared_ptr<Network> (*make)(const NetworkOptions& options);
  bool convolutional = true;
};

const Entry kNetworks[] = {
    {"densenet", make_densenet}, {"lenet", make_lenet},       {"mlp", make_mlp, false},
    {"resnet18", make_resnet18}, {"resnet26", make_resnet26}, {"vgg16", make_vgg16},
    {"wrn-40-4", make_wrn_40_4},
};

const Entry& find_network(const std::string& name) {
  std::string known;
  for (const Entry& entry : kNetworks) {
    if (name == entry.name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  TORCH_CHECK(false, "[models] expected one of ", known, ", got '", name, "'");
}

// Below 16 pixels the smallest feature maps vanish.
constexpr int64_t kSmallestImage = 16;

void check(const NetworkOptions& options) {
  TORCH_CHECK(options.classes >= 2, "[models] expected at least 2 classes, got ", options.classes);
  TORCH_CHECK(options.channels >= 1, "[models] expected at least 1 channel, got ",
              options.channels);
  TORCH_CHECK(options.image_size >= kSmallestImage, "[models] expected images of at least ",
              kSmallestImage, " pixels a side, got ", options.image_size);
}

}  // namespace

NetworkOutput Network::forward(const torch::Tensor& images) {
  const int64_t size = options_.image_size;
  TORCH_CHECK(images.dim() == 4 && images.size(1) == options_.channels && images.size(2) == size &&
                  images.size(3) == size,
              "[models] expected images of shape (B,", options_.channels, ",", size, ",", size,
              "), got ", ops::describe(images));
  const torch::Tensor embedding =
      embed(channels_last_ ? images.contiguous(torch::MemoryFormat::ChannelsLast) : images);
  return {embedding, head_->forward(embedding)};
}

void Network::checkpoint_activations() {
  const auto all = modules(/*include_self=*/false);
  TORCH_CHECK(
      std::any_of(all.begin(), all.end(), [](const auto& m) { return m->template as<Stage>(); }),
      "[models] expected a network of blocks to checkpoint activations, got one without");
  checkpoints_activations_ = true;
}

void Network::use_channels_last() {
  for (torch::Tensor& p : parameters()) {
    if (p.dim() == 4) p.set_data(p.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  channels_last_ = true;
}

void Network::set_head(const std::string& name, int64_t features) {
  head_ = register_module(name, torch::nn::Linear(features, options_.classes));
}

std::shared_ptr<Network> make(const std::string& name, const NetworkOptions& options) {
  check(options);
  return find_network(name).make(options);
}

std::string default_placement(const std::string& name, const std::string& activation) {
  const bool split = activation == "qact" || activation == "ibn-relu";
  return split && find_network(name).convolutional ? "split" : "reference";
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Entry& entry : kNetworks) result.emplace_back(entry.name);
  return result;
}

}  // namespace qact::models
