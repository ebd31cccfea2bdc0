// ResNet18 for small images: a 3x3 stem without pooling, four stages of two basic blocks.
// 11,173,962 parameters for 3 channels and 10 classes with ReLU.
//
// Sites: trunk after the stem's norm (stage 0) and after each residual sum (stages 1 to 4);
// branch between the two convolutions of a block; pooled. `split` with K = 1: the stem, and both
// sites of each block of stage 1.
#include <torch/torch.h>

#include "qact/models/activation_checkpointing.h"
#include "qact/models/blocks.h"
#include "qact/models/factories.h"
#include "qact/models/layers.h"
#include "qact/models/placement.h"

namespace qact::models {
namespace {

using torch::nn::AnyModule;

constexpr int64_t kResnetStages = 4;
constexpr Sites kResnetSites = {.stages = kResnetStages, .branches = true, .pooled = true};

class BasicBlock : public Block {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride, int64_t stage, const NetworkOptions& options,
             const Placement& placement)
      : conv1_(register_module("conv1", convolution(in, out, 3, stride))),
        bn1_(register_layer(*this, "bn1", make_norm(options.norm, out))),
        inner_(register_layer(*this, "inner_activation", placement.branch(out, stage))),
        conv2_(register_module("conv2", convolution(out, out, 3))),
        bn2_(register_layer(*this, "bn2", make_norm(options.norm, out))),
        shortcut_(register_module("shortcut", torch::nn::Sequential())),
        outer_(register_layer(*this, "outer_activation", placement.trunk(out, stage))) {
    if (stride != 1 || in != out) {
      shortcut_->push_back(convolution(in, out, 1, stride));
      shortcut_->push_back(make_norm(options.norm, out));
    }
  }

  torch::Tensor forward(const torch::Tensor& x) override {
    torch::Tensor y = inner_.forward(bn1_.forward(conv1_(x)));
    y = bn2_.forward(conv2_(y));
    return outer_.forward(y + (shortcut_->is_empty() ? x : shortcut_->forward(x)));
  }

 private:
  torch::nn::Conv2d conv1_;
  AnyModule bn1_, inner_;
  torch::nn::Conv2d conv2_;
  AnyModule bn2_;
  torch::nn::Sequential shortcut_;
  AnyModule outer_;
};

class ResNet18 : public Network {
 public:
  ResNet18(const NetworkOptions& options, const Placement& placement)
      : Network(options),
        conv1_(register_module("conv1", convolution(options.channels, 64, 3))),
        bn1_(register_layer(*this, "bn1", make_norm(options.norm, 64))),
        stem_(register_layer(*this, "stem_activation", placement.trunk(64, 0))) {
    int64_t in = 64;
    for (int64_t stage = 1; stage <= kResnetStages; ++stage) {
      const int64_t out = int64_t{32} << stage;
      auto& layer = layers_.emplace_back(
          register_module("layer" + std::to_string(stage), std::make_shared<Stage>()));
      layer->append(
          std::make_shared<BasicBlock>(in, out, stage == 1 ? 1 : 2, stage, options, placement));
      layer->append(std::make_shared<BasicBlock>(out, out, 1, stage, options, placement));
      in = out;
    }
    pooled_ = register_layer(*this, "pooled_activation", placement.pooled(in));
    set_head("linear", in);
  }

 private:
  torch::Tensor embed(const torch::Tensor& images) override {
    // The stem's activations are as large as a block's, so it is a segment of its own.
    const auto stem = [this](const torch::Tensor& x) {
      return stem_.forward(bn1_.forward(conv1_(x)));
    };
    torch::Tensor x =
        checkpoints_activations() ? checkpoint(stem, stem_buffers(), images) : stem(images);
    for (const auto& layer : layers_) x = layer->forward(x, checkpoints_activations());
    return pooled_.forward(x.mean({2, 3}));
  }

  std::vector<torch::Tensor> stem_buffers() const {
    std::vector<torch::Tensor> buffers = bn1_.ptr()->buffers();
    for (const torch::Tensor& buffer : stem_.ptr()->buffers()) buffers.push_back(buffer);
    return buffers;
  }

  torch::nn::Conv2d conv1_;
  AnyModule bn1_, stem_;
  std::vector<std::shared_ptr<Stage>> layers_;
  AnyModule pooled_;
};

}  // namespace

std::shared_ptr<Network> make_resnet18(const NetworkOptions& options) {
  return std::make_shared<ResNet18>(options, Placement(options, kResnetSites));
}

}  // namespace qact::models
