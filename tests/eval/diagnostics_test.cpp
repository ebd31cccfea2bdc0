#include "qact/eval/diagnostics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "qact/nn/quantile_activation.h"
#include "qact/ops/single_thread_guard.h"
#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

// Rows against the values that they count, neuron by neuron.
TEST(Diagnostics, RowsCountTheNeuronsValues) {
  const EvaluationFixture folder;
  EvaluateOptions options;
  options.modes = {"prior"};
  options.corruptions = {"brightness"};
  options.severities = {0, 5};
  options.inference.batch_size = 5;
  options.limit = 12;
  options.threads = 1;
  options.diagnostics = true;
  evaluate(folder.run("run"), options);

  const ops::SingleThreadGuard single_thread;  // as in evaluate(): the last bits depend on it
  const train::Model model = folder.model();
  std::vector<Neuron> neurons =
      choose_neurons(activation_layers(*model.network, torch::zeros({2, 1, 16, 16})));
  options.inference.mode = "prior";
  observe_neurons(*model.network, static_cast<int64_t>(neurons.size()) / 3, &neurons,
                  [&] { infer(model, folder.test_images().slice(0, 12), options.inference, {}); });
  const auto modules = model.network->named_modules();
  const auto rows = results::of_kind(results::read_rows(folder.run("run").results()), "histogram");
  EXPECT_EQ(rows.size(), neurons.size() * 5);  // two severities of two kinds, and a context
  for (const results::Row& row : rows) {
    const auto same = [&](const Neuron& n) {
      return n.layer.name == row["layer"] && n.channel == row["channel"];
    };
    const auto neuron = std::find_if(neurons.begin(), neurons.end(), same);
    ASSERT_NE(neuron, neurons.end());
    const double low = row["low"], high = row["high"];
    Histogram expected;
    if (row["what"] == "context") {
      EXPECT_TRUE(row["severity"].is_null());
      const auto* layer = modules[neuron->layer.name]->as<nn::QuantileActivation>();
      expected = context_histogram(layer->context[neuron->channel], low, high);
    } else if (row["severity"] == 0) {
      const torch::Tensor values =
          torch::cat(row["what"] == "activation" ? neuron->outputs : neuron->inputs);
      expected = histogram(values, low, high);
      EXPECT_NEAR(row["mean"].get<double>(), values.mean().item<double>(), 1e-5);
      EXPECT_NEAR(row["std"].get<double>(), values.std(false).item<double>(), 1e-5);
    } else {
      EXPECT_EQ(row["corruption"], "brightness");
      continue;
    }
    EXPECT_EQ(row["below"], expected.below);
    EXPECT_EQ(row["above"], expected.above);
    for (int b = 0; b < kHistogramBins; ++b) {
      EXPECT_NEAR(row["counts"][b].get<double>(), expected.counts[b], 5e-4);
    }
  }
}

// Half of the first layer's 32 channels in the placement split: each image is their context.
TEST(Diagnostics, ChannelsRankedInTheirImageHaveNoRunningContext) {
  const EvaluationFixture folder("qact", "lenet");
  EvaluateOptions options;
  options.modes = {"batch"};
  options.corruptions = {"brightness"};
  options.severities = {0, 5};
  options.limit = 12;
  options.threads = 1;
  options.diagnostics = true;
  evaluate(folder.run("run"), options);
  std::set<int64_t> channels;
  for (const auto& row :
       results::of_kind(results::read_rows(folder.run("run").results()), "histogram")) {
    if (row["what"] != "context") continue;
    EXPECT_EQ(row["layer"], "activation1");
    channels.insert(row["channel"].get<int64_t>());
  }
  EXPECT_EQ(channels, (std::set<int64_t>{16, 31}));
}

}  // namespace
}  // namespace qact::eval
