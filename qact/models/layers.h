// Layers that several networks have.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/conv.h>

#include <string>

namespace qact::models {

// Registers a layer of any type in `parent`, and returns it.
torch::nn::AnyModule register_layer(torch::nn::Module& parent, const std::string& name,
                                    torch::nn::AnyModule layer);

// A convolution of a square kernel, without bias, padded so that stride 1 keeps the image size.
torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel_size, int64_t stride = 1);

// The norm that NetworkOptions names.
torch::nn::AnyModule make_norm(const std::string& name, int64_t channels);

// Draws the weights of all convolutions inside from N(0, 2 / (kernel_size^2 out)): Kaiming's, by
// fan-out.
void initialise_convolutions(torch::nn::Module& network);

}  // namespace qact::models
