#include "qact/nn/instance_batch_norm.h"

#include <torch/types.h>

#include <ostream>

#include "qact/ops/checks.h"

namespace qact::nn {

InstanceBatchNormImpl::InstanceBatchNormImpl(int64_t num_features) : num_features_(num_features) {
  TORCH_CHECK(num_features > 1, "[InstanceBatchNorm] expected num_features > 1, got ",
              num_features);
  reset();
}

void InstanceBatchNormImpl::reset() {
  const int64_t instance = num_features_ / 2;
  weight = register_parameter("weight", torch::ones({instance}));
  bias = register_parameter("bias", torch::zeros({instance}));
  batch = register_module("batch", BatchNorm(num_features_ - instance));
}

void InstanceBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "qact::nn::InstanceBatchNorm(" << num_features_ << ")";
}

torch::Tensor InstanceBatchNormImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() >= 2 && x.size(1) == num_features_, "[InstanceBatchNorm] expected ",
              num_features_, " channels in dimension 1, got ", ops::describe(x));
  const bool empty = x.size(0) == 0;  // a rank without images
  TORCH_CHECK(empty || x.numel() > x.size(0) * x.size(1),
              "[InstanceBatchNorm] expected more than one value per image and channel to take "
              "statistics from, got ",
              ops::describe(x));
  const int64_t instance = weight.size(0);
  const torch::Tensor part = x.narrow(1, 0, instance);
  const torch::Tensor in_images =
      empty ? torch::batch_norm(part, weight, bias, torch::zeros_like(weight),
                                torch::ones_like(weight), /*training=*/false, /*momentum=*/0,
                                batch->options.eps(), /*cudnn_enabled=*/true)
            : torch::instance_norm(part, weight, bias, {}, {}, /*use_input_stats=*/true,
                                   /*momentum=*/0, batch->options.eps(), /*cudnn_enabled=*/true);
  const torch::Tensor in_batch = batch->forward(x.narrow(1, instance, num_features_ - instance));
  return torch::relu(torch::cat({in_images, in_batch}, 1));
}

}  // namespace qact::nn
