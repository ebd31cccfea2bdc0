#include "qact/models/placement.h"

#include "qact/nn/activation.h"

namespace qact::models {

Sites::Sites(const NetworkOptions& options, int64_t stages)
    : activation_(options.activation),
      placement_(parse(options.placement)),
      early_stages_(options.early_stages) {
  TORCH_CHECK(placement_ != Placement::early || (early_stages_ >= 0 && early_stages_ <= stages),
              "[models] expected 0 to ", stages, " early stages, got ", early_stages_);
}

Sites::Placement Sites::parse(const std::string& name) {
  if (name == "reference") return Placement::reference;
  if (name == "early") return Placement::early;
  if (name == "all") return Placement::all;
  TORCH_CHECK(false, "[models] expected the placement reference, early or all, got '", name, "'");
}

torch::nn::AnyModule Sites::trunk(int64_t channels, int64_t stage) const {
  return make(placement_ != Placement::early || stage <= early_stages_, channels);
}

torch::nn::AnyModule Sites::branch(int64_t channels) const {
  return make(placement_ == Placement::all, channels);
}

torch::nn::AnyModule Sites::pooled(int64_t channels) const {
  return make(placement_ != Placement::early, channels);
}

torch::nn::AnyModule Sites::make(bool under_test, int64_t channels) const {
  return nn::make_activation(under_test ? activation_ : "relu", channels);
}

}  // namespace qact::models
