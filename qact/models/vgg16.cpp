// VGG16 with BatchNorm and one linear layer on 512 pooled features: 14,728,266 parameters for
// 3 channels and 10 classes with ReLU. Pooling rounds odd sizes up, so that 28x28 survives all
// five; a global average follows.
//
// Sites: trunk after each of the 13 norms. The first is the stem (stage 0), the others belong to
// the stage (1 to 5) that ends with the next pooling. Pooled. No branches, so `all` equals
// `reference`. `split` with K = 1: after the first two norms.
#include <torch/torch.h>

#include "qact/models/factories.h"
#include "qact/models/layers.h"
#include "qact/models/placement.h"

namespace qact::models {
namespace {

struct VggStage {
  int64_t channels, convolutions;
};
constexpr VggStage kVggStages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
constexpr Sites kVggSites = {.stages = std::size(kVggStages), .pooled = true};

class Vgg16 : public Network {
 public:
  Vgg16(const NetworkOptions& options, const Placement& placement)
      : Network(options), features_(register_module("features", torch::nn::Sequential())) {
    int64_t in = options.channels;
    int64_t stage = 0;
    for (const VggStage& next : kVggStages) {
      for (int64_t i = 0; i < next.convolutions; ++i) {
        features_->push_back(
            torch::nn::Conv2d(torch::nn::Conv2dOptions(in, next.channels, 3).padding(1)));
        features_->push_back(make_norm(options.norm, next.channels));
        features_->push_back(placement.trunk(next.channels, stage));
        in = next.channels;
        stage = std::max<int64_t>(stage, 1);
      }
      features_->push_back(torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2).ceil_mode(true)));
      ++stage;
    }
    pooled_ = register_layer(*this, "pooled_activation", placement.pooled(in));
    set_head("classifier", in);
  }

 private:
  torch::Tensor embed(const torch::Tensor& images) override {
    return pooled_.forward(features_->forward(images).mean({2, 3}));
  }

  torch::nn::Sequential features_;
  torch::nn::AnyModule pooled_;
};

}  // namespace

std::shared_ptr<Network> make_vgg16(const NetworkOptions& options) {
  return std::make_shared<Vgg16>(options, Placement(options, kVggSites));
}

}  // namespace qact::models
