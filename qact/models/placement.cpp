#include "qact/models/placement.h"

#include "qact/nn/activation.h"

namespace qact::models {

Placement::Placement(const NetworkOptions& options, const Sites& sites)
    : activation_(options.activation),
      kind_(parse(options.placement)),
      early_stages_(options.early_stages),
      image_share_(options.image_share),
      sites_(sites),
      chosen_(parse_site_list(options.sites, sites)) {
  TORCH_CHECK(image_share_ >= 0 && image_share_ <= 1,
              "[models] expected an image share in [0, 1], "
              "got ",
              image_share_);
  if (kind_ == Kind::early) check_stages(sites.stages);
  if (kind_ != Kind::split) return;
  TORCH_CHECK(sites.convolutional_stages >= 0,
              "[models] expected a network with convolutions for the placement split, got one "
              "without");
  check_stages(sites.convolutional_stages);
}

void Placement::check_stages(int64_t stages) const {
  TORCH_CHECK(early_stages_ >= 0 && early_stages_ <= stages, "[models] expected 0 to ", stages,
              " early stages, got ", early_stages_);
}

Placement::Kind Placement::parse(const std::string& name) {
  if (name == "reference") return Kind::reference;
  if (name == "early") return Kind::early;
  if (name == "split") return Kind::split;
  if (name == "all") return Kind::all;
  TORCH_CHECK(false, "[models] expected the placement reference, early, split or all, got '", name,
              "'");
}

torch::nn::AnyModule Placement::trunk(int64_t channels, int64_t stage) const {
  const bool everywhere = kind_ == Kind::reference || kind_ == Kind::all;
  return make(trunk_site(stage), everywhere || is_early(stage), channels,
              stage <= sites_.convolutional_stages);
}

torch::nn::AnyModule Placement::branch(int64_t channels, int64_t stage) const {
  return make(branch_site(stage), kind_ == Kind::all || (kind_ == Kind::split && is_early(stage)),
              channels, /*convolutional=*/true);
}

torch::nn::AnyModule Placement::pooled(int64_t channels) const {
  return make(kPooledSite, kind_ == Kind::reference || kind_ == Kind::all, channels,
              /*convolutional=*/false);
}

torch::nn::AnyModule Placement::make(const std::string& site, bool under_test, int64_t channels,
                                     bool convolutional) const {
  std::string name = under_test ? activation_ : "relu";
  if (under_test && kind_ == Kind::split && activation_ == "qact") name = kSplit;
  if (const auto chosen = chosen_.find(site); chosen != chosen_.end()) name = chosen->second;
  const bool split = name == kSplit;
  const torch::nn::AnyModule activation =
      nn::make_activation(split ? "qact" : name, channels, split ? image_share_ : 0);
  TORCH_CHECK(convolutional || !nn::uses_single_images(activation),
              "[models] expected a site of a "
              "convolution for '",
              name, "', got '", site, "', where an image has one value per channel");
  return activation;
}

}  // namespace qact::models
