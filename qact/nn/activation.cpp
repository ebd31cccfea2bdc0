#include "qact/nn/activation.h"

#include <torch/nn/modules/activation.h>

#include "qact/nn/batch_norm.h"
#include "qact/nn/instance_batch_norm.h"
#include "qact/nn/quantile_activation.h"

namespace qact::nn {
namespace {

struct Entry {
  const char* name;
  torch::nn::AnyModule (*make)(int64_t num_features, double image_share);
};

const Entry kActivations[] = {
    {"qact",
     [](int64_t c, double image_share) {
       return torch::nn::AnyModule(
           QuantileActivation(QuantileActivationOptions(c).image_share(image_share)));
     }},
    {"relu", [](int64_t, double) { return torch::nn::AnyModule(torch::nn::ReLU()); }},
    {"prelu",
     [](int64_t c, double) {
       return torch::nn::AnyModule(torch::nn::PReLU(torch::nn::PReLUOptions().num_parameters(c)));
     }},
    {"selu", [](int64_t, double) { return torch::nn::AnyModule(torch::nn::SELU()); }},
    // A norm before the ReLU, as qact has one: what is left of qact without its ranks.
    {"bn-relu",
     [](int64_t c, double) {
       return torch::nn::AnyModule(BatchNorm(BatchNormOptions(c).relu(true)));
     }},
    // What is left of qact with an image share of a half, without its ranks.
    {"ibn-relu", [](int64_t c, double) { return torch::nn::AnyModule(InstanceBatchNorm(c)); }},
};

}  // namespace

torch::nn::AnyModule make_activation(const std::string& name, int64_t num_features,
                                     double image_share) {
  std::string names;
  for (const Entry& entry : kActivations) {
    if (name == entry.name) return entry.make(num_features, image_share);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  TORCH_CHECK(false, "[make_activation] expected one of ", names, ", got '", name, "'");
}

bool norms_input(const torch::nn::AnyModule& activation) {
  const auto module = activation.ptr();
  const auto* quantile = module->as<QuantileActivation>();
  return (quantile && quantile->options.norm_in()) || module->as<BatchNorm>() ||
         module->as<InstanceBatchNorm>();
}

bool uses_single_images(const torch::nn::AnyModule& activation) {
  const auto module = activation.ptr();
  const auto* quantile = module->as<QuantileActivation>();
  return (quantile && quantile->image_channels() > 0) || module->as<InstanceBatchNorm>();
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kActivations) names.emplace_back(entry.name);
  return names;
}

}  // namespace qact::nn
