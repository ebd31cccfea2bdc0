// Activations by name, so that a network never asks which one it was given.
#pragma once

#include <torch/nn/modules/container/any.h>

#include <string>
#include <vector>

namespace qact::nn {

// qact, relu, prelu, selu, bn-relu (BatchNorm, then ReLU) or ibn-relu (half InstanceNorm, half
// BatchNorm, then ReLU), for `num_features` channels in dimension 1. qact comes with its norms,
// this image share and its default options otherwise. Throws for any other name, listing those that
// exist.
torch::nn::AnyModule make_activation(const std::string& name, int64_t num_features,
                                     double image_share = 0);

std::vector<std::string> activation_names();

// Whether the activation norms its input itself, so that a norm before it is one too many.
bool norms_input(const torch::nn::AnyModule& activation);

// Whether some of its channels have each image as their context, which one value cannot be.
bool uses_single_images(const torch::nn::AnyModule& activation);

}  // namespace qact::nn
