// Lets tests in Python compare their layer with the C++ module, bit for bit.
//
//   layer_interchange STATE INPUTS OUTPUT STATE_AFTER [KEY=VALUE ...]
//
// Reads a QuantileActivation's state, runs it over the tensors of INPUTS in the order of their
// names, and writes what comes out and the state after that. mode=train runs it in train(), with
// the gradient of each input for a gradient of "grad" (of the inputs' shape) in OUTPUT, too.
#include <torch/torch.h>

#include <cstdio>
#include <map>
#include <span>

#include "qact/nn/quantile_activation.h"
#include "qact/safetensors/torch/tensors.h"

namespace {

using qact::nn::ContextMode;
using qact::nn::Scope;

const std::map<std::string, ContextMode> kModes = {{"train", ContextMode::tracked},
                                                   {"tracked", ContextMode::tracked},
                                                   {"batch", ContextMode::batch},
                                                   {"prior", ContextMode::prior},
                                                   {"stream", ContextMode::stream}};
const std::map<std::string, Scope> kScopes = {
    {"batch", Scope::batch}, {"image", Scope::image}, {"group", Scope::group}};

struct Wanted {
  qact::nn::QuantileActivationOptions options = 1;
  bool train = false;
};

Wanted parse_wanted(int64_t channels, std::span<char*> arguments) {
  Wanted wanted{channels};
  auto& options = wanted.options;
  for (const std::string argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (key == "mode") {
      options.context_mode(kModes.at(value));
      wanted.train = value == "train";
    } else if (key == "scope") {
      options.scope(kScopes.at(value));
    } else if (key == "group_images") {
      options.group_images(std::stoll(value));
    } else if (key == "image_share") {
      options.image_share(std::stod(value));
    } else if (key == "levels") {
      options.levels(std::stoll(value));
    } else if (key == "norm_in") {
      options.norm_in(value == "1");
    } else if (key == "norm_out") {
      options.norm_out(value == "1");
    } else if (key == "momentum") {
      options.momentum(value == "none" ? std::nullopt : std::optional(std::stod(value)));
    } else {
      TORCH_CHECK(false, "[layer_interchange] expected a known key, got '", argument, "'");
    }
  }
  return wanted;
}

void run(std::span<char*> arguments) {
  TORCH_CHECK(arguments.size() >= 4,
              "[layer_interchange] expected STATE INPUTS OUTPUT STATE_AFTER");
  auto inputs = qact::safetensors::read_tensors(arguments[1]).tensors;
  const torch::Tensor grad = inputs.at("grad");
  inputs.erase("grad");
  const Wanted wanted = parse_wanted(grad.size(1), arguments.subspan(4));
  qact::nn::QuantileActivation layer(wanted.options);
  qact::safetensors::load_state_dict(*layer, qact::safetensors::read_tensors(arguments[0]).tensors,
                                     arguments[0]);
  layer->train(wanted.train);
  qact::safetensors::Tensors outputs;
  for (const auto& [name, values] : inputs) {
    const torch::Tensor x = values.clone().set_requires_grad(true);
    const torch::Tensor y = layer->forward(x);
    y.backward(grad);
    outputs[name] = y.detach();
    outputs[name + ".grad"] = x.grad();
  }
  qact::safetensors::write_tensors(arguments[2], outputs);
  qact::safetensors::write_tensors(arguments[3], qact::safetensors::state_dict(*layer));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, static_cast<size_t>(argc - 1)});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
