// A multilayer perceptron on the flattened image: three hidden layers of 512, each with a
// norm. 2,106,890 parameters for 3x32x32 and 10 classes with ReLU.
//
// Sites: trunk after each norm, the first one the stem (stage 0), the others stages 1 and 2.
// No branches and nothing pooled, so `all` equals `reference`. The embedding is the last site's
// output. No convolutions, so there is no `split`.
#include <torch/torch.h>

#include "qact/models/factories.h"
#include "qact/models/layers.h"
#include "qact/models/placement.h"

namespace qact::models {
namespace {

constexpr int64_t kHidden = 3;
constexpr int64_t kWidth = 512;
constexpr Sites kMlpSites = {.stages = kHidden - 1, .convolutional_stages = -1};

class Mlp : public Network {
 public:
  Mlp(const NetworkOptions& options, const Placement& placement) : Network(options) {
    int64_t in = options.channels * options.image_size * options.image_size;
    for (int64_t i = 0; i < kHidden; ++i) {
      const std::string number = std::to_string(i + 1);
      hidden_.push_back({register_module("fc" + number, torch::nn::Linear(in, kWidth)),
                         register_layer(*this, "bn" + number, make_norm(options.norm, kWidth)),
                         register_layer(*this, "activation" + number, placement.trunk(kWidth, i))});
      in = kWidth;
    }
    set_head("fc" + std::to_string(kHidden + 1), in);
  }

 private:
  struct Hidden {
    torch::nn::Linear linear;
    torch::nn::AnyModule norm, activation;
  };

  torch::Tensor embed(const torch::Tensor& images) override {
    torch::Tensor x = images.flatten(1);
    for (Hidden& layer : hidden_) x = layer.activation.forward(layer.norm.forward(layer.linear(x)));
    return x;
  }

  std::vector<Hidden> hidden_;
};

}  // namespace

std::shared_ptr<Network> make_mlp(const NetworkOptions& options) {
  return std::make_shared<Mlp>(options, Placement(options, kMlpSites));
}

}  // namespace qact::models
