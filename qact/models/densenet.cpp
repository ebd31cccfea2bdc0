// DenseNet of growth 12, dense blocks of 6, 12, 24 and 16 bottlenecks, and compression 0.5:
// 1,000,618 parameters for 3 channels and 10 classes with ReLU.
//
// Sites: trunk after the first norm of each bottleneck, after the norm of each transition and after
// the last norm: these read all features so far. The first of them reads the stem (stage 0), the
// others dense block 1 to 4 with its transition. Branch inside a bottleneck; pooled. `split` with
// K = 1: all sites up to the one that dense block 2 begins with.
#include <torch/torch.h>

#include "qact/models/blocks.h"
#include "qact/models/factories.h"
#include "qact/models/layers.h"
#include "qact/models/placement.h"

namespace qact::models {
namespace {

using torch::nn::AnyModule;

constexpr int64_t kGrowth = 12;
constexpr int64_t kBlocks[] = {6, 12, 24, 16};
constexpr int64_t kDenseStages = std::size(kBlocks);
constexpr Sites kDenseSites = {.stages = kDenseStages, .branches = true, .pooled = true};

class Bottleneck : public Block {
 public:
  // `input_stage`: that of what it reads.
  Bottleneck(int64_t in, int64_t stage, int64_t input_stage, const NetworkOptions& options,
             const Placement& placement)
      : bn1_(register_layer(*this, "bn1", make_norm(options.norm, in))),
        outer_(register_layer(*this, "outer_activation", placement.trunk(in, input_stage))),
        conv1_(register_module("conv1", convolution(in, 4 * kGrowth, 1))),
        bn2_(register_layer(*this, "bn2", make_norm(options.norm, 4 * kGrowth))),
        inner_(register_layer(*this, "inner_activation", placement.branch(4 * kGrowth, stage))),
        conv2_(register_module("conv2", convolution(4 * kGrowth, kGrowth, 3))) {}

  torch::Tensor forward(const torch::Tensor& x) override {
    const torch::Tensor y = conv1_(outer_.forward(bn1_.forward(x)));
    return torch::cat({conv2_(inner_.forward(bn2_.forward(y))), x}, 1);
  }

 private:
  AnyModule bn1_, outer_;
  torch::nn::Conv2d conv1_;
  AnyModule bn2_, inner_;
  torch::nn::Conv2d conv2_;
};

class Transition : public Block {
 public:
  Transition(int64_t in, int64_t stage, const NetworkOptions& options, const Placement& placement)
      : bn_(register_layer(*this, "bn", make_norm(options.norm, in))),
        activation_(register_layer(*this, "activation", placement.trunk(in, stage))),
        conv_(register_module("conv", convolution(in, in / 2, 1))) {}

  torch::Tensor forward(const torch::Tensor& x) override {
    return torch::avg_pool2d(conv_(activation_.forward(bn_.forward(x))), 2);
  }

 private:
  AnyModule bn_, activation_;
  torch::nn::Conv2d conv_;
};

class DenseNet : public Network {
 public:
  DenseNet(const NetworkOptions& options, const Placement& placement)
      : Network(options),
        conv1_(register_module("conv1", convolution(options.channels, 2 * kGrowth, 3))) {
    int64_t width = 2 * kGrowth;
    for (int64_t stage = 1; stage <= kDenseStages; ++stage) {
      auto& dense = dense_.emplace_back(
          register_module("dense" + std::to_string(stage), std::make_shared<Stage>()));
      for (int64_t i = 0; i < kBlocks[stage - 1]; ++i) {
        dense->append(std::make_shared<Bottleneck>(width, stage, i == 0 ? stage - 1 : stage,
                                                   options, placement));
        width += kGrowth;
      }
      if (stage == kDenseStages) break;
      transitions_.push_back(
          register_module("trans" + std::to_string(stage),
                          std::make_shared<Transition>(width, stage, options, placement)));
      width /= 2;
    }
    bn_ = register_layer(*this, "bn", make_norm(options.norm, width));
    last_ = register_layer(*this, "last_activation", placement.trunk(width, kDenseStages));
    pooled_ = register_layer(*this, "pooled_activation", placement.pooled(width));
    set_head("linear", width);
  }

 private:
  torch::Tensor embed(const torch::Tensor& images) override {
    torch::Tensor x = conv1_(images);
    for (size_t i = 0; i < dense_.size(); ++i) {
      x = dense_[i]->forward(x, checkpoints_activations());
      if (i < transitions_.size()) x = transitions_[i]->forward(x);
    }
    return pooled_.forward(last_.forward(bn_.forward(x)).mean({2, 3}));
  }

  torch::nn::Conv2d conv1_;
  std::vector<std::shared_ptr<Stage>> dense_;
  std::vector<std::shared_ptr<Transition>> transitions_;
  AnyModule bn_, last_, pooled_;
};

}  // namespace

std::shared_ptr<Network> make_densenet(const NetworkOptions& options) {
  return std::make_shared<DenseNet>(options, Placement(options, kDenseSites));
}

}  // namespace qact::models
