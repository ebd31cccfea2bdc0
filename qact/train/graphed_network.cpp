#include "qact/train/graphed_network.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

namespace qact::train {

c10::Stream GraphedNetwork::stream(torch::Device device) {
  const c10::impl::VirtualGuardImpl on(device.type());
  const torch::Device exact = device.has_index() ? device : on.getDevice();
  on.synchronizeStream(on.getStream(exact));
  return on.getStreamFromGlobalPool(exact);
}

GraphedNetwork::GraphedNetwork(const torch::Tensor& images, const Forward& forward)
    : images_(images.clone()) {
  forward_.emplace([&] {
    // A name of its own: autograd is not to mind that batches overwrite each other.
    const models::NetworkOutput output = forward(images_.variable_data());
    embedding_.output = output.embedding;
    logits_.output = output.logits;
  });
}

models::NetworkOutput GraphedNetwork::forward(const torch::Tensor& images) {
  images_.copy_(images, /*non_blocking=*/true);
  forward_->replay();
  for (End* end : {&embedding_, &logits_}) {
    end->leaf = end->output.detach().requires_grad_(true);
  }
  return {embedding_.leaf, logits_.leaf};
}

void GraphedNetwork::record_backward() {
  std::vector<torch::Tensor> outputs, gradients;
  for (End* end : {&embedding_, &logits_}) {
    if (!end->leaf.grad().defined()) continue;
    end->gradient = end->leaf.grad().clone();
    outputs.push_back(end->output);
    gradients.push_back(end->gradient);
  }
  backward_.emplace([&] { torch::autograd::backward(outputs, gradients); }, &*forward_);
}

void GraphedNetwork::backward() {
  if (!backward_) record_backward();
  for (End* end : {&embedding_, &logits_}) {
    if (end->gradient.defined()) end->gradient.copy_(end->leaf.grad());
  }
  backward_->replay();
}

}  // namespace qact::train
