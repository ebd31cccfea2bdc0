// LeNet, wider than the original and with BatchNorm: 5x5 convolutions of 32 and 64 channels, each
// pooled by 2, then linear layers of 512 and 256 (the original has 6, 16, 120 and 84). A norm
// follows each, unless the activation normalises its input itself. 712,522 parameters for 1x28x28
// and 10 classes with ReLU; QAct has two more per channel of a site.
//
// Sites: trunk after the first convolution (stage 0), the second one and the two linear layers
// (stages 1 to 3). No branches and nothing pooled, so `all` equals `reference`. The embedding is
// the last site's output. `split` with K = 1: after both convolutions, without the linear layers.
#include <torch/torch.h>

#include "qact/models/factories.h"
#include "qact/models/layers.h"
#include "qact/models/placement.h"
#include "qact/nn/activation.h"

namespace qact::models {
namespace {

using torch::nn::AnyModule;

constexpr int64_t kSide = 5;
constexpr int64_t kChannels[] = {32, 64};
constexpr int64_t kWidths[] = {512, 256};
constexpr Sites kLenetSites = {.stages = 3, .convolutional_stages = 1};

class LeNet : public Network {
 public:
  LeNet(const NetworkOptions& options, const Placement& placement) : Network(options) {
    int64_t in = options.channels;
    int64_t size = options.image_size;
    for (const int64_t out : kChannels) {
      convolutions_.push_back(
          register_module(next("conv", convolutions_.size()), torch::nn::Conv2d(in, out, kSide)));
      add_site(out, placement);
      size = (size - kSide + 1) / 2;
      in = out;
    }
    in *= size * size;
    for (const int64_t out : kWidths) {
      linears_.push_back(register_module(next("fc", linears_.size()), torch::nn::Linear(in, out)));
      add_site(out, placement);
      in = out;
    }
    set_head("fc3", in);
  }

 private:
  static std::string next(const char* name, size_t count) {
    return name + std::to_string(count + 1);
  }

  void add_site(int64_t channels, const Placement& placement) {
    const size_t i = norms_.size();
    const AnyModule activation = placement.trunk(channels, i);
    const bool normed = nn::norms_input(activation);
    norms_.push_back(
        normed ? AnyModule(torch::nn::Identity())
               : register_layer(*this, next("bn", i), make_norm(options().norm, channels)));
    activations_.push_back(register_layer(*this, next("activation", i), activation));
  }

  torch::Tensor embed(const torch::Tensor& images) override {
    torch::Tensor x = images;
    size_t site = 0;
    const auto activate = [&](const torch::Tensor& y) {
      const torch::Tensor z = activations_[site].forward(norms_[site].forward(y));
      ++site;
      return z;
    };
    for (auto& convolution : convolutions_) x = torch::max_pool2d(activate(convolution(x)), 2);
    x = x.flatten(1);
    for (auto& linear : linears_) x = activate(linear(x));
    return x;
  }

  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::Linear> linears_;
  std::vector<AnyModule> norms_, activations_;
};

}  // namespace

std::shared_ptr<Network> make_lenet(const NetworkOptions& options) {
  return std::make_shared<LeNet>(options, Placement(options, kLenetSites));
}

}  // namespace qact::models
