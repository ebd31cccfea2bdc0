#include "qact/train/graphed_network.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include "qact/train/device.h"

namespace qact::train {

c10::Stream GraphedNetwork::side_stream(torch::Device device) {
  const c10::impl::VirtualGuardImpl on(device.type());
  const torch::Device exact = with_index(device);
  on.synchronizeStream(on.getStream(exact));
  return on.getStreamFromGlobalPool(exact);
}

GraphedNetwork::GraphedNetwork(const torch::Tensor& images, const Forward& forward)
    : images_(images.clone()) {
  forward_.emplace([&] {
    // variable_data() has a version counter of its own: autograd then accepts that each batch
    // overwrites the one before.
    const models::NetworkOutput output = forward(images_.variable_data());
    embedding_.value = output.embedding;
    logits_.value = output.logits;
  });
}

models::NetworkOutput GraphedNetwork::forward(const torch::Tensor& images) {
  images_.copy_(images, /*non_blocking=*/true);
  forward_->replay();
  for (Output* output : {&embedding_, &logits_}) {
    output->leaf = output->value.detach().requires_grad_(true);
  }
  return {embedding_.leaf, logits_.leaf};
}

void GraphedNetwork::capture_backward() {
  std::vector<torch::Tensor> outputs, gradients;
  for (Output* output : {&embedding_, &logits_}) {
    if (!output->leaf.grad().defined()) continue;
    output->gradient = output->leaf.grad().clone();
    outputs.push_back(output->value);
    gradients.push_back(output->gradient);
  }
  backward_.emplace([&] { torch::autograd::backward(outputs, gradients); }, &*forward_);
}

void GraphedNetwork::backward() {
  if (!backward_) capture_backward();
  for (Output* output : {&embedding_, &logits_}) {
    if (output->gradient.defined()) output->gradient.copy_(output->leaf.grad());
  }
  backward_->replay();
}

}  // namespace qact::train
