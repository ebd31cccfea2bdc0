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

// A layer with random affine parameters, after a few passes in train().
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

// In every mode: after the outer norm, if the layer has one. In augment, those of the copies too.
TEST(Neurons, ActivationsAreWhatTheNextLayerReads) {
  for (const bool norm_in : {true, false}) {
    for (const bool norm_out : {true, false}) {
      const train::Model model = one_layer(
          nn::QuantileActivationOptions(kLayerChannels).norm_in(norm_in).norm_out(norm_out));
      const data::Split split = random_images(21);
      for (const std::string& mode : inference_modes()) {
        SCOPED_TRACE(mode + (norm_in ? ", norm in" : "") + (norm_out ? ", norm out" : ""));
        InferenceOptions options;
        options.mode = mode;
        options.batch_size = 7;
        options.copies = 4;
        std::vector<Neuron> neurons(kLayerChannels);
        for (int64_t c = 0; c < kLayerChannels; ++c) neurons[c].channel = c;
        InferenceOutput output;
        observe_neurons(*model.network, 1, &neurons,
                        [&] { output = infer(model, split, options, {}); });
        for (const Neuron& neuron : neurons) {
          ASSERT_FALSE(neuron.outputs.empty());
          const int64_t copies = mode == "augment" ? 1 + options.copies : 1;
          const Tensor after =
              torch::cat(neuron.outputs).view({-1, copies, kLayerSide * kLayerSide}).select(1, 0);
          EXPECT_TRUE(torch::equal(after.flatten(), of_channel(output.embedding, neuron.channel)));
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
    std::vector<Neuron> neurons = choose_neurons(activation_layers(*model.network, images));
    ASSERT_EQ(neurons.size(), 3u);
    EXPECT_EQ(neurons[0].layer.name, "layer");
    const torch::NoGradGuard no_grad;
    observe_neurons(*model.network, 1, &neurons, [&] { model.network->forward(images); });
    for (const Neuron& neuron : neurons) {
      EXPECT_TRUE(torch::equal(torch::cat(neuron.inputs), of_channel(images, neuron.channel)));
    }
  }
}

// Finding the layers takes a forward pass, which in a stream would move the contexts.
TEST(ActivationLayers, LeaveTheNetworkAsItWas) {
  const train::Model model = one_layer(kLayerChannels);
  nn::set_context_mode(*model.network, nn::ContextMode::stream, 5);
  const auto& layer = std::static_pointer_cast<OneLayer>(model.network)->layer;
  const Tensor context = layer->context.clone(), mean = layer->running_mean_in.clone();
  activation_layers(*model.network, torch::randn({9, kLayerChannels, kLayerSide, kLayerSide}));
  EXPECT_TRUE(torch::equal(layer->context, context));
  EXPECT_TRUE(torch::equal(layer->running_mean_in, mean));
  EXPECT_EQ(layer->options.context_mode(), nn::ContextMode::stream);
  EXPECT_EQ(layer->options.prior(), 5);
  EXPECT_TRUE(layer->is_training());
}

// A layer that throws has no output; its error reaches the caller.
TEST(Neurons, OfAFailingPassHaveNoValues) {
  const train::Model model = one_layer(kLayerChannels);
  model.network->eval();
  std::static_pointer_cast<OneLayer>(model.network)->layer->options.levels(0);
  const Tensor images = torch::randn({2, kLayerChannels, kLayerSide, kLayerSide});
  for (const auto mode : {nn::ContextMode::tracked, nn::ContextMode::batch}) {
    nn::set_context_mode(*model.network, mode);
    std::vector<Neuron> neurons(1);
    expect_in("levels", message_of([&] {
                observe_neurons(*model.network, 1, &neurons,
                                [&] { model.network->forward(images); });
              }));
    EXPECT_TRUE(neurons[0].outputs.empty());
  }
}

std::shared_ptr<models::Network> small_network(const std::string& activation) {
  torch::manual_seed(1);
  models::NetworkOptions options;
  options.channels = 1;
  options.image_size = 28;
  options.activation = activation;
  auto network = models::make("lenet", options);
  const torch::NoGradGuard no_grad;
  network->forward(torch::randn({6, 1, 28, 28}));
  network->eval();
  return network;
}

TEST(ActivationLayers, AreInTheOrderOfTheNetwork) {
  const torch::Tensor images = torch::randn({2, 1, 28, 28});
  const auto qact = activation_layers(*small_network("qact"), images);
  const auto relu = activation_layers(*small_network("relu"), images);
  ASSERT_EQ(qact.size(), 4u);
  ASSERT_EQ(relu.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i + 1);
    EXPECT_EQ(qact[i].name, "activation" + number);
    EXPECT_EQ(qact[i].kind, "qact");
    EXPECT_EQ(relu[i].name, "after bn" + number);
    EXPECT_EQ(relu[i].kind, "relu");
    EXPECT_EQ(qact[i].index, i);
  }
  EXPECT_EQ(qact.front().channels, 32);
  EXPECT_EQ(qact.back().channels, 256);
}

TEST(Neurons, OutputsAreTheActivationOfInputs) {
  for (const std::string activation : {"relu", "prelu", "selu", "bn-relu"}) {
    const auto network = small_network(activation);
    const auto layers = activation_layers(*network, torch::randn({2, 1, 28, 28}));
    ASSERT_EQ(layers.size(), 4u);
    std::vector<Neuron> neurons = choose_neurons(layers);
    ASSERT_EQ(neurons.size(), 9u);
    for (const nn::ContextMode mode : {nn::ContextMode::batch, nn::ContextMode::prior}) {
      nn::set_context_mode(*network, mode);
      std::vector<Neuron> observed = neurons;
      const torch::NoGradGuard no_grad;
      observe_neurons(*network, 4, &observed, [&] {
        for (int batch = 0; batch < 2; ++batch) network->forward(torch::randn({5, 1, 28, 28}));
      });
      for (const Neuron& neuron : observed) {
        ASSERT_EQ(neuron.inputs.size(), 2u);
        const torch::Tensor before = torch::cat(neuron.inputs), after = torch::cat(neuron.outputs);
        EXPECT_EQ(before.numel() % 10, 0);
        // PReLU's slope is 0.25 before any training.
        const torch::Tensor expected = activation == "prelu"
                                           ? torch::where(before > 0, before, 0.25 * before)
                                       : activation == "selu" ? torch::selu(before)
                                                              : torch::relu(before);
        EXPECT_TRUE(torch::allclose(after, expected)) << activation;
      }
    }
  }
}

}  // namespace
}  // namespace qact::eval
