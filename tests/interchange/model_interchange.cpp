// Lets tests in Python compare a network with their own version of it.
//
//   model_interchange make NAME WEIGHTS [KEY=VALUE ...]
//   model_interchange logits NAME WEIGHTS IMAGES OUTPUT [KEY=VALUE ...]
//
// `make` writes random weights. `logits` reads weights, and "images" from a second file, and
// writes "embedding" and "logits" of the network in eval(). Keys: activation, norm.
#include <torch/torch.h>

#include <cstdio>
#include <span>

#include "qact/models/network.h"
#include "qact/nn/batch_norm.h"
#include "qact/safetensors/torch/tensors.h"

namespace {

using Arguments = std::span<char*>;

qact::models::NetworkOptions parse_options(Arguments arguments) {
  qact::models::NetworkOptions options;
  for (const std::string argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    TORCH_CHECK(equals != std::string::npos && (key == "activation" || key == "norm"),
                "[model_interchange] expected activation=NAME or norm=NAME, got '", argument, "'");
    (key == "norm" ? options.norm : options.activation) = argument.substr(equals + 1);
  }
  return options;
}

void make_weights(Arguments arguments) {
  TORCH_CHECK(arguments.size() >= 2, "[model_interchange] expected NAME WEIGHTS");
  const auto network = qact::models::make(arguments[0], parse_options(arguments.subspan(2)));
  // Running statistics of a real batch: with those of a fresh network a deep one is mute.
  for (const auto& module : network->modules()) {
    if (auto* norm = module->as<qact::nn::BatchNorm>()) norm->options.momentum(std::nullopt);
  }
  network->forward(torch::randn({8, 3, 32, 32}));
  qact::safetensors::write_tensors(arguments[1], qact::safetensors::state_dict(*network));
}

void write_logits(Arguments arguments) {
  TORCH_CHECK(arguments.size() >= 4, "[model_interchange] expected NAME WEIGHTS IMAGES OUTPUT");
  const auto network = qact::models::make(arguments[0], parse_options(arguments.subspan(4)));
  qact::safetensors::load_state_dict(
      *network, qact::safetensors::read_tensors(arguments[1]).tensors, arguments[1]);
  const auto images = qact::safetensors::read_tensors(arguments[2]).tensors.at("images");
  network->eval();
  const torch::NoGradGuard no_grad;
  const auto output = network->forward(images);
  qact::safetensors::write_tensors(arguments[3],
                                   {{"embedding", output.embedding}, {"logits", output.logits}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments(argv + 1, argc - 1);
    const std::string what = arguments.empty() ? "" : arguments[0];
    if (what == "make") {
      make_weights(arguments.subspan(1));
    } else if (what == "logits") {
      write_logits(arguments.subspan(1));
    } else {
      std::fprintf(stderr, "usage: model_interchange make|logits ...\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
