// Images of a tensor, and networks that adapt to them.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "qact/adapt/method.h"
#include "qact/nn/context_mode.h"

namespace qact::adapt {

class TensorImages : public Images {
 public:
  explicit TensorImages(torch::Tensor images) : images_(std::move(images)) {}

  int64_t count() const override { return images_.size(0); }
  torch::Tensor batch(int64_t first, int64_t last) const override {
    return images_.slice(0, first, last);
  }
  torch::Tensor copies(int64_t index, int64_t count, const data::Augmentation&) const override {
    return images_.slice(0, index, index + 1).repeat({count, 1, 1, 1});
  }

 private:
  torch::Tensor images_;
};

// In eval(), with the statistics of the batch.
inline std::shared_ptr<models::Network> batch_network(const std::string& activation,
                                                      const std::string& norm = "batch") {
  torch::manual_seed(7);
  auto network = models::make(
      "mlp",
      {.classes = 3, .channels = 1, .image_size = 16, .activation = activation, .norm = norm});
  network->eval();
  nn::set_context_mode(*network, nn::ContextMode::batch);
  return network;
}

inline torch::Tensor random_images(int64_t count, uint64_t seed = 3) {
  torch::manual_seed(seed);
  return torch::randn({count, 1, 16, 16});
}

// The logits of the whole stream in batches of `size`.
inline torch::Tensor adapted_logits(Method& method, const Images& images, int64_t size) {
  std::vector<torch::Tensor> all;
  method.prepare(images);
  for (int64_t first = 0; first < images.count(); first += size) {
    all.push_back(method.predict(images, first, std::min(first + size, images.count())).logits);
  }
  return torch::cat(all);
}

// Copies of all parameters and buffers.
inline std::vector<torch::Tensor> state_of(const torch::nn::Module& network) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& each : network.parameters()) all.push_back(each.detach().clone());
  for (const torch::Tensor& each : network.buffers()) all.push_back(each.clone());
  return all;
}

inline bool same_state(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace qact::adapt
