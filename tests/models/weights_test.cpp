#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "qact/models/network.h"
#include "qact/safetensors/torch/tensors.h"
#include "tests/base/scratch_folder.h"

namespace qact::safetensors {
namespace {

class Weights : public testing::Test {
 protected:
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch.path / "w.safetensors";
};

TEST_F(Weights, OfEveryTypeAndLayoutComeBack) {
  Tensors tensors;
  for (const auto type :
       {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
        torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    tensors[c10::toString(type)] = torch::arange(6).sub(2).to(type).view({2, 3}).t();
  }
  tensors["empty"] = torch::empty({0, 4});
  tensors["number"] = torch::tensor(3.5);
  tensors["channels_last"] = torch::randn({2, 3, 4, 5}).to(torch::MemoryFormat::ChannelsLast);
  write_tensors(path, tensors, {{"k", "v"}});
  const TensorFile file = read_tensors(path);
  EXPECT_EQ(file.metadata, (Metadata{{"k", "v"}}));
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(file.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(file.tensors.at(name), tensor)) << name;
  }
  EXPECT_THROW(write_tensors(path, {{"c", torch::zeros({1}, torch::kComplexFloat)}}),
               std::runtime_error);
}

TEST_F(Weights, CarryAWholeNetwork) {
  const models::NetworkOptions options{
      .classes = 5, .channels = 1, .image_size = 28, .activation = "qact"};
  torch::manual_seed(1);
  const auto network = models::make("lenet", options);
  const torch::Tensor images = torch::randn({8, 1, 28, 28});
  network->forward(images);  // moves the running statistics and the contexts
  write_tensors(path, state_dict(*network));

  const auto copy = models::make("lenet", options);
  load_state_dict(*copy, read_tensors(path).tensors, path.string());
  network->eval();
  copy->eval();
  const models::NetworkOutput a = network->forward(images), b = copy->forward(images);
  EXPECT_TRUE(torch::equal(a.logits, b.logits));
  EXPECT_TRUE(torch::equal(a.embedding, b.embedding));
}

TEST_F(Weights, ThatDoNotFitAreRefusedAndNothingIsLoaded) {
  const auto network = models::make("mlp", {.image_size = 16});
  Tensors before;
  for (const auto& [name, tensor] : state_dict(*network)) before[name] = tensor.detach().clone();
  const auto message = [&](const std::function<void(Tensors&)>& change) -> std::string {
    Tensors state;
    for (const auto& [name, tensor] : before) state[name] = torch::ones_like(tensor);
    change(state);
    try {
      load_state_dict(*network, state, "w.safetensors");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([](Tensors& state) { state.erase("fc2.bias"); }),
            "[safetensors] w.safetensors: tensor 'fc2.bias': expected float32 of shape (512), "
            "got none");
  EXPECT_EQ(message([](Tensors& state) { state["fc2.bias"] = torch::zeros({511}); }),
            "[safetensors] w.safetensors: tensor 'fc2.bias': expected float32 of shape (512), "
            "got float32 of shape (511)");
  EXPECT_EQ(message([](Tensors& state) { state["fc2.bias"] = torch::zeros({512}, at::kDouble); }),
            "[safetensors] w.safetensors: tensor 'fc2.bias': expected float32 of shape (512), "
            "got float64 of shape (512)");
  EXPECT_EQ(message([](Tensors& state) { state["fc5.bias"] = torch::zeros({1}); }),
            "[safetensors] w.safetensors: expected only tensors that the module has, got "
            "'fc5.bias' too");
  for (const auto& [name, tensor] : state_dict(*network)) {
    EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name;
  }
  EXPECT_EQ(message([](Tensors&) {}), "no error");
  EXPECT_EQ(state_dict(*network).at("fc2.bias").sum().item<float>(), 512);
}

}  // namespace
}  // namespace qact::safetensors
