#include "qact/eval/diagnostics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qact/core/context.h"
#include "qact/nn/quantile_activation.h"
#include "qact/ops/context.h"
#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

double total(const Histogram& h) {
  return std::accumulate(h.counts.begin(), h.counts.end(), h.below + h.above);
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

TEST(Diagnostics, HistogramsCountEveryValueOnce) {
  const torch::Tensor values = torch::tensor({-2.0f, -1.0f, 0.0f, 0.999f, 1.0f, 1.5f});
  const Histogram h = histogram(values, -1, 1);
  EXPECT_EQ(h.below, 1);
  EXPECT_EQ(h.above, 1);
  EXPECT_EQ(h.counts.front(), 1);
  EXPECT_EQ(h.counts[kHistogramBins / 2], 1);
  EXPECT_EQ(h.counts.back(), 2);
  EXPECT_EQ(total(h), 6);
}

// A kept context's values are spread over its bins: the histogram of what it was built from,
// nearly, and none are lost.
TEST(Diagnostics, ContextsBecomeEqualBins) {
  torch::manual_seed(2);
  const torch::Tensor x = torch::randn({20000, 1});
  const Histogram found = context_histogram(ops::context_build(x)[0], -4, 4);
  const Histogram plain = histogram(x.flatten(), -4, 4);
  EXPECT_NEAR(total(found), 20000, 1);
  for (int b = 0; b < kHistogramBins; ++b) {
    EXPECT_NEAR(found.counts[b], plain.counts[b], 0.1 * plain.counts[b] + 120) << b;
  }
}

TEST(Diagnostics, ContextsAreShownWhereTheirValuesAre) {
  torch::manual_seed(2);
  const torch::Tensor counts = ops::context_build(0.1 * torch::randn({20000, 1}) + 0.2)[0];
  const auto [low, high] = context_range(counts);
  int edges = 0;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    edges += low == core::context_edge(bin) || high == core::context_edge(bin);
  }
  EXPECT_EQ(edges, 2);
  EXPECT_NEAR(low, 0.2 - 3.1 * 0.1, 0.03);
  EXPECT_NEAR(high, 0.2 + 3.1 * 0.1, 0.06);
  const Histogram h = context_histogram(counts, low, high);
  EXPECT_LE(h.below + h.above, 0.002 * total(h));

  // Of values in the outermost bins, which have no end, and of none.
  for (const torch::Tensor& few : {ops::context_build(torch::full({4, 1}, 1e9))[0],
                                   torch::zeros(core::kContextBins, torch::kLong)}) {
    const auto [from, to] = context_range(few);
    EXPECT_TRUE(std::isfinite(from) && std::isfinite(to) && from < to) << from << " " << to;
  }
}

TEST(Diagnostics, SitesAreInTheOrderOfTheNetwork) {
  const torch::Tensor images = torch::randn({2, 1, 28, 28});
  const auto own = activation_sites(*small_network("qact"), images);
  const auto bare = activation_sites(*small_network("relu"), images);
  ASSERT_EQ(own.size(), 4u);
  ASSERT_EQ(bare.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i + 1);
    EXPECT_EQ(own[i].layer, "activation" + number);
    EXPECT_EQ(own[i].kind, "qact");
    EXPECT_EQ(bare[i].layer, "after bn" + number);
    EXPECT_EQ(bare[i].kind, "relu");
    EXPECT_EQ(own[i].index, i);
  }
  EXPECT_EQ(own.front().channels, 32);
  EXPECT_EQ(own.back().channels, 256);
}

TEST(Diagnostics, NeuronsShowWhatPasses) {
  for (const std::string activation : {"relu", "prelu", "selu", "bn-relu"}) {
    const auto network = small_network(activation);
    const auto sites = activation_sites(*network, torch::randn({2, 1, 28, 28}));
    ASSERT_EQ(sites.size(), 4u);
    std::vector<Neuron> neurons = choose_neurons(sites);
    ASSERT_EQ(neurons.size(), 9u);
    for (const nn::ContextMode mode : {nn::ContextMode::batch, nn::ContextMode::prior}) {
      nn::set_context_mode(*network, mode);
      std::vector<Neuron> watched = neurons;
      const torch::NoGradGuard no_grad;
      watch_neurons(*network, 4, &watched, [&] {
        for (int batch = 0; batch < 2; ++batch) network->forward(torch::randn({5, 1, 28, 28}));
      });
      for (const Neuron& neuron : watched) {
        ASSERT_EQ(neuron.before.size(), 2u);
        const torch::Tensor before = torch::cat(neuron.before), after = torch::cat(neuron.after);
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

  const train::Model model = folder.model();
  std::vector<Neuron> neurons =
      choose_neurons(activation_sites(*model.network, torch::zeros({2, 1, 16, 16})));
  options.inference.mode = "prior";
  watch_neurons(*model.network, static_cast<int64_t>(neurons.size()) / 3, &neurons,
                [&] { infer(model, folder.test_images().slice(0, 12), options.inference, {}); });
  const auto modules = model.network->named_modules();
  const auto rows = results::of_kind(results::read_rows(folder.run("run").results()), "histogram");
  EXPECT_EQ(rows.size(), neurons.size() * 5);  // two severities of two kinds, and a context
  for (const results::Row& row : rows) {
    const auto same = [&](const Neuron& n) {
      return n.site.layer == row["layer"] && n.channel == row["channel"];
    };
    const auto neuron = std::find_if(neurons.begin(), neurons.end(), same);
    ASSERT_NE(neuron, neurons.end());
    const double low = row["low"], high = row["high"];
    Histogram expected;
    if (row["what"] == "context") {
      EXPECT_TRUE(row["severity"].is_null());
      const auto* layer = modules[neuron->site.layer]->as<nn::QuantileActivation>();
      expected = context_histogram(layer->context[neuron->channel], low, high);
    } else if (row["severity"] == 0) {
      const torch::Tensor values =
          torch::cat(row["what"] == "activation" ? neuron->after : neuron->before);
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

}  // namespace
}  // namespace qact::eval
