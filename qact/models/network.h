// The networks, by name. Each has a file of its own (factories.h).
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
  std::string placement = "reference";  // of the activation: see placement.h
  int64_t early_stages = 1;             // K of the placements "early" and "split"
  double image_share = 0.5;             // of QAct's channels at the sites of "split"
  std::string sites = "";               // "2=ibn-relu,pooled=qact": see site_list.h
  std::string norm = "batch";           // or "group": GroupNorm of 8 groups
};

struct NetworkOutput {
  torch::Tensor embedding;  // (B, features), the input of the last linear layer
  torch::Tensor logits;     // (B, classes)
};

class Network : public torch::nn::Module {
 public:
  // images (B, channels, image_size, image_size)
  NetworkOutput forward(const torch::Tensor& images);

  // From now on the forward pass of each block runs again in the backward pass: the same
  // gradients in less memory (activation_checkpointing.h). Throws for a network without blocks.
  void checkpoint_activations();

  // From now on kernels and images are in the layout channels-last, the fastest on GPUs.
  void use_channels_last();

  int64_t features() const { return head_->options.in_features(); }
  const NetworkOptions& options() const { return options_; }

 protected:
  explicit Network(NetworkOptions options) : options_(std::move(options)) {}

  bool checkpoints_activations() const { return checkpoints_activations_; }

  // Makes the last linear layer. Its name is the one that the usual Python version gives it.
  void set_head(const std::string& name, int64_t features);

 private:
  virtual torch::Tensor embed(const torch::Tensor& images) = 0;

  NetworkOptions options_;
  bool checkpoints_activations_ = false;
  bool channels_last_ = false;
  torch::nn::Linear head_{nullptr};
};

// Throws for an unknown name and for options that the network does not support. Weights are drawn
// from torch's default generator.
std::shared_ptr<Network> make(const std::string& name, const NetworkOptions& options);

std::vector<std::string> names();

// Of an activation in a network where none is chosen: split for qact and ibn-relu in a network with
// convolutions, else reference.
std::string default_placement(const std::string& name, const std::string& activation);

}  // namespace qact::models
