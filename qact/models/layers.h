// What several networks are made of.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/conv.h>

#include <string>

namespace qact::models {

// A layer of a type unknown here, registered in `parent`.
torch::nn::AnyModule add(torch::nn::Module& parent, const std::string& name,
                         torch::nn::AnyModule layer);

// A square convolution without bias; a side of 3 is padded to keep the size.
torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t side, int64_t stride = 1);

// The norm of NetworkOptions by name.
torch::nn::AnyModule make_norm(const std::string& name, int64_t channels);

// Draws the weights of all convolutions inside from N(0, 2 / (side^2 out)).
void initialise_convolutions(torch::nn::Module& network);

}  // namespace qact::models
