#include "qact/models/placement.h"

#include "qact/nn/activation.h"

namespace qact::models {

Placement::Placement(const NetworkOptions& options, int64_t stages)
    : activation_(options.activation),
      kind_(parse(options.placement)),
      early_stages_(options.early_stages) {
  TORCH_CHECK(kind_ != Kind::early || (early_stages_ >= 0 && early_stages_ <= stages),
              "[models] expected 0 to ", stages, " early stages, got ", early_stages_);
}

Placement::Kind Placement::parse(const std::string& name) {
  if (name == "reference") return Kind::reference;
  if (name == "early") return Kind::early;
  if (name == "all") return Kind::all;
  TORCH_CHECK(false, "[models] expected the placement reference, early or all, got '", name, "'");
}

torch::nn::AnyModule Placement::trunk(int64_t channels, int64_t stage) const {
  return make(kind_ != Kind::early || stage <= early_stages_, channels);
}

torch::nn::AnyModule Placement::branch(int64_t channels) const {
  return make(kind_ == Kind::all, channels);
}

torch::nn::AnyModule Placement::pooled(int64_t channels) const {
  return make(kind_ != Kind::early, channels);
}

torch::nn::AnyModule Placement::make(bool under_test, int64_t channels) const {
  return nn::make_activation(under_test ? activation_ : "relu", channels);
}

}  // namespace qact::models
