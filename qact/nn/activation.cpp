#include "qact/nn/activation.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>

#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

// A norm before the ReLU, as qact has one: what is left of qact without its ranks.
struct NormReluImpl : torch::nn::BatchNormImplBase<2, NormReluImpl> {
  using BatchNormImplBase::BatchNormImplBase;
  void _check_input_dim(const torch::Tensor&) override {}  // images and vectors
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(BatchNormImplBase::forward(x));
  }
};
TORCH_MODULE(NormRelu);

struct Entry {
  const char* name;
  torch::nn::AnyModule (*make)(int64_t channels);
};

const Entry kActivations[] = {
    {"qact", [](int64_t c) { return torch::nn::AnyModule(QuantileActivation(c)); }},
    {"relu", [](int64_t) { return torch::nn::AnyModule(torch::nn::ReLU()); }},
    {"prelu",
     [](int64_t c) {
       return torch::nn::AnyModule(torch::nn::PReLU(torch::nn::PReLUOptions().num_parameters(c)));
     }},
    {"selu", [](int64_t) { return torch::nn::AnyModule(torch::nn::SELU()); }},
    {"bn-relu", [](int64_t c) { return torch::nn::AnyModule(NormRelu(c)); }},
};

}  // namespace

torch::nn::AnyModule make_activation(const std::string& name, int64_t channels) {
  std::string names;
  for (const Entry& entry : kActivations) {
    if (name == entry.name) return entry.make(channels);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  TORCH_CHECK(false, "[make_activation] expected one of ", names, ", got '", name, "'");
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kActivations) names.emplace_back(entry.name);
  return names;
}

}  // namespace qact::nn
