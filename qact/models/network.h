// The networks, by name. One file each; models.cpp has the table.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

namespace qact::models {

struct NetworkOptions {
  int64_t classes = 10;
  int64_t channels = 3;     // of the images
  int64_t image_size = 32;  // their height and width
  std::string activation = "relu";
  std::string placement = "reference";  // where it goes: see placement.h
  int64_t early_stages = 1;             // K of the placement `early`
  std::string norm = "batch";           // or "group": GroupNorm of 8 groups
};

struct NetworkOutput {
  torch::Tensor embedding;  // (B, features): what the last linear layer reads
  torch::Tensor logits;     // (B, classes)
};

class Network : public torch::nn::Module {
 public:
  // images (B, channels, image_size, image_size)
  NetworkOutput forward(const torch::Tensor& images);

  // Blocks are computed again in the backward pass instead of being kept for it: the same
  // gradients in less memory. Throws, where there are no blocks.
  void checkpoint_activations();

  // Kernels and images in the layout that GPUs are fastest with, from now on.
  void use_channels_last();

  int64_t features() const { return head_->options.in_features(); }
  const NetworkOptions& options() const { return options_; }

 protected:
  explicit Network(NetworkOptions options) : options_(std::move(options)) {}

  bool recomputes() const { return recomputes_; }

  // The last linear layer; its name is the usual Python version's.
  void set_head(const std::string& name, int64_t features);

 private:
  virtual torch::Tensor embed(const torch::Tensor& images) = 0;

  NetworkOptions options_;
  bool recomputes_ = false;
  bool channels_last_ = false;
  torch::nn::Linear head_{nullptr};
};

// Throws for unknown names and for options that the network cannot have. Weights are drawn
// from torch's default generator.
std::shared_ptr<Network> make(const std::string& name, const NetworkOptions& options);

std::vector<std::string> names();

}  // namespace qact::models
