#include "qact/models/preactivation.h"

#include <torch/torch.h>

#include "qact/models/blocks.h"

namespace qact::models {
namespace {

using torch::nn::AnyModule;

constexpr int64_t kWideStages = 3;
constexpr int64_t kStem = 16;
constexpr Sites kPreactivationSites = {.stages = kWideStages, .branches = true, .pooled = true};

class PreactivationBlock : public Block {
 public:
  // `input_stage`: that of what it reads.
  PreactivationBlock(int64_t in, int64_t out, int64_t stride, int64_t stage, int64_t input_stage,
                     bool convolved_shortcut, const NetworkOptions& options,
                     const Placement& placement)
      : stride_(stride),
        padding_(out - in),
        bn1_(register_layer(*this, "bn1", make_norm(options.norm, in))),
        outer_(register_layer(*this, "outer_activation", placement.trunk(in, input_stage))),
        conv1_(register_module("conv1", convolution(in, out, 3, stride))),
        bn2_(register_layer(*this, "bn2", make_norm(options.norm, out))),
        inner_(register_layer(*this, "inner_activation", placement.branch(out, stage))),
        conv2_(register_module("conv2", convolution(out, out, 3))) {
    if (convolved_shortcut && in != out) {
      shortcut_ = register_module("convShortcut", convolution(in, out, 1, stride));
    }
  }

  torch::Tensor forward(const torch::Tensor& x) override {
    const torch::Tensor activated = outer_.forward(bn1_.forward(x));
    const torch::Tensor y = inner_.forward(bn2_.forward(conv1_(activated)));
    return conv2_(y) + shortcut(x, activated);
  }

 private:
  torch::Tensor shortcut(const torch::Tensor& x, const torch::Tensor& activated) {
    if (!shortcut_.is_empty()) return shortcut_(activated);
    if (padding_ == 0 && stride_ == 1) return x;
    return torch::constant_pad_nd(torch::avg_pool2d(x, stride_), {0, 0, 0, 0, 0, padding_});
  }

  int64_t stride_, padding_;
  AnyModule bn1_, outer_;
  torch::nn::Conv2d conv1_;
  AnyModule bn2_, inner_;
  torch::nn::Conv2d conv2_;
  torch::nn::Conv2d shortcut_{nullptr};
};

class Preactivation : public Network {
 public:
  Preactivation(const PreactivationArchitecture& architecture, const NetworkOptions& options,
                const Placement& placement)
      : Network(options),
        conv1_(register_module("conv1", convolution(options.channels, kStem, 3))) {
    int64_t in = kStem;
    for (int64_t stage = 1; stage <= kWideStages; ++stage) {
      const int64_t out = architecture.width * (int64_t{8} << stage);
      const auto blocks = stages_.emplace_back(std::make_shared<Stage>());
      for (int64_t i = 0; i < architecture.blocks; ++i) {
        const bool first = i == 0;
        blocks->append(std::make_shared<PreactivationBlock>(
            first ? in : out, out, first && stage > 1 ? 2 : 1, stage, first ? stage - 1 : stage,
            architecture.convolved_shortcut, options, placement));
      }
      register_stage(architecture, architecture.stage + std::to_string(stage), blocks);
      in = out;
    }
    norm_ = register_layer(*this, architecture.last_norm, make_norm(options.norm, in));
    last_ = register_layer(*this, "last_activation", placement.trunk(in, kWideStages));
    pooled_ = register_layer(*this, "pooled_activation", placement.pooled(in));
    set_head("fc", in);
    initialise_convolutions(*this);
  }

 private:
  void register_stage(const PreactivationArchitecture& architecture, const std::string& name,
                      const std::shared_ptr<Stage>& blocks) {
    if (architecture.blocks_inside.empty()) {
      register_module(name, blocks);
    } else {
      const auto outer = register_module(name, std::make_shared<torch::nn::Module>());
      outer->register_module(architecture.blocks_inside, blocks);
    }
  }

  torch::Tensor embed(const torch::Tensor& images) override {
    torch::Tensor x = conv1_(images);
    for (const auto& stage : stages_) x = stage->forward(x, checkpoints_activations());
    return pooled_.forward(last_.forward(norm_.forward(x)).mean({2, 3}));
  }

  torch::nn::Conv2d conv1_;
  std::vector<std::shared_ptr<Stage>> stages_;
  AnyModule norm_, last_, pooled_;
};

}  // namespace

std::shared_ptr<Network> make_preactivation(const PreactivationArchitecture& architecture,
                                            const NetworkOptions& options) {
  return std::make_shared<Preactivation>(architecture, options,
                                         Placement(options, kPreactivationSites));
}

}  // namespace qact::models
