#include "qact/eval/neurons.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "qact/eval/inference.h"
#include "qact/nn/quantile_activation.h"
#include "tests/base/message.h"

namespace qact::eval {
namespace {

using torch::Tensor;

constexpr int64_t kLayerChannels = 3, kLayerSide = 4;

// One quantile activation: the embedding is what it gives to the next layer.
class OneLayer : public models::Network {
 public:
  explicit OneLayer(const nn::QuantileActivationOptions& options)
      : Network({.classes = 2, .channels = kLayerChannels, .image_size = kLayerSide}) {
    layer = register_module("layer", nn::QuantileActivation(options));
    set_head("fc", kLayerChannels * kLayerSide * kLayerSide);
  }

  nn::QuantileActivation layer{nullptr};

 private:
  Tensor embed(const Tensor& images) override { return layer->forward(images).flatten(1); }
};

data::Split random_images(int64_t count) {
  const image::Size size{kLayerSide, kLayerSide, kLayerChannels};
  const Tensor pixels =
      torch::randint(256, {count * static_cast<int64_t>(size.values())}, torch::kByte);
  const auto* first = pixels.data_ptr<uint8_t>();
  return data::make_split(size, 2, {first, first + pixels.numel()},
                          std::vector<int64_t>(static_cast<size_t>(count), 0));
}

// A layer with other affine parameters than those it begins with, trained a little.
train::Model one_layer(nn::QuantileActivationOptions options) {
  torch::manual_seed(3);
  const auto network = std::make_shared<OneLayer>(options);
  const torch::NoGradGuard no_grad;
  for (const Tensor& parameter : network->layer->parameters()) parameter.uniform_(0.5, 2);
  for (int step = 0; step < 3; ++step) {
    network->forward(0.3 * torch::randn({8, kLayerChannels, kLayerSide, kLayerSide}) + 0.1);
  }
  train::ModelCard card;
  card.options = network->options();
  card.normalisation = {{0.5, 0.4, 0.3}, {0.2, 0.3, 0.4}};
  card.loss = "cross-entropy";
  return {card, network, {}};
}

// The channel of (n, channels, side, side), as a neuron has it.
Tensor of_channel(const Tensor& images, int64_t channel) {
  return images.view({-1, kLayerChannels, kLayerSide * kLayerSide}).select(1, channel).flatten();
}

// In every mode the activations are what the next layer reads: after the outer norm, if the layer
// has one. In augment they are those of the copies, too.
TEST(Neurons, ActivationsAreWhatTheNextLayerReads) {
  for (const bool norm_in : {true, false}) {
    for (const bool norm_out : {true, false}) {
      const train::Model model = one_layer(
          nn::QuantileActivationOptions(kLayerChannels).norm_in(norm_in).norm_out(norm_out));
      const data::Split split = random_images(21);
      for (const std::string& mode : inference_modes()) {
        SCOPED_TRACE(mode + (norm_in ? ", norm in" : "") + (norm_out ? ", norm out" : ""));
        Inference how;
        how.mode = mode;
        how.batch_size = 7;
        how.copies = 4;
        std::vector<Neuron> neurons(kLayerChannels);
        for (int64_t c = 0; c < kLayerChannels; ++c) neurons[c].channel = c;
        Outputs outputs;
        watch_neurons(*model.network, 1, &neurons, [&] { outputs = infer(model, split, how, {}); });
        for (const Neuron& neuron : neurons) {
          ASSERT_FALSE(neuron.after.empty());
          const int64_t copies = mode == "augment" ? 1 + how.copies : 1;
          const Tensor after =
              torch::cat(neuron.after).view({-1, copies, kLayerSide * kLayerSide}).select(1, 0);
          EXPECT_TRUE(torch::equal(after.flatten(), of_channel(outputs.embedding, neuron.channel)));
        }
      }
    }
  }
}

TEST(Neurons, PreactivationsAreWhatTheLayerReads) {
  const train::Model model = one_layer(kLayerChannels);
  const Tensor images = torch::randn({5, kLayerChannels, kLayerSide, kLayerSide});
  model.network->eval();
  for (const auto mode : {nn::ContextMode::tracked, nn::ContextMode::batch, nn::ContextMode::prior,
                          nn::ContextMode::stream}) {
    nn::set_context_mode(*model.network, mode);
    std::vector<Neuron> neurons = choose_neurons(activation_sites(*model.network, images));
    ASSERT_EQ(neurons.size(), 3u);
    EXPECT_EQ(neurons[0].site.layer, "layer");
    const torch::NoGradGuard no_grad;
    watch_neurons(*model.network, 1, &neurons, [&] { model.network->forward(images); });
    for (const Neuron& neuron : neurons) {
      EXPECT_TRUE(torch::equal(torch::cat(neuron.before), of_channel(images, neuron.channel)));
    }
  }
}

// Looking for the sites is a forward pass, which in a stream would move the contexts.
TEST(Neurons, SitesLeaveTheNetworkAsItWas) {
  const train::Model model = one_layer(kLayerChannels);
  nn::set_context_mode(*model.network, nn::ContextMode::stream, 5);
  const auto& layer = std::static_pointer_cast<OneLayer>(model.network)->layer;
  const Tensor context = layer->context.clone(), mean = layer->running_mean_in.clone();
  activation_sites(*model.network, torch::randn({9, kLayerChannels, kLayerSide, kLayerSide}));
  EXPECT_TRUE(torch::equal(layer->context, context));
  EXPECT_TRUE(torch::equal(layer->running_mean_in, mean));
  EXPECT_EQ(layer->options.context_mode(), nn::ContextMode::stream);
  EXPECT_EQ(layer->options.prior(), 5);
  EXPECT_TRUE(layer->is_training());
}

// A layer that fails has no output; its error is told as it is.
TEST(Neurons, AFailingPassIsNotRecorded) {
  const train::Model model = one_layer(kLayerChannels);
  model.network->eval();
  std::static_pointer_cast<OneLayer>(model.network)->layer->options.levels(0);
  const Tensor images = torch::randn({2, kLayerChannels, kLayerSide, kLayerSide});
  for (const auto mode : {nn::ContextMode::tracked, nn::ContextMode::batch}) {
    nn::set_context_mode(*model.network, mode);
    std::vector<Neuron> neurons(1);
    expect_in("levels", message_of([&] {
                watch_neurons(*model.network, 1, &neurons, [&] { model.network->forward(images); });
              }));
    EXPECT_TRUE(neurons[0].after.empty());
  }
}

}  // namespace
}  // namespace qact::eval
