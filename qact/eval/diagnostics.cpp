#include "qact/eval/diagnostics.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "qact/metrics/tsne.h"
#include "qact/nn/quantile_activation.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

struct MeanAndStd {
  double mean = 0, std = 0;
};
MeanAndStd mean_and_std(const torch::Tensor& values) {
  const torch::Tensor wide = values.to(torch::kDouble);
  return {wide.mean().item<double>(), wide.std(/*unbiased=*/false).item<double>()};
}

// Four standard deviations around the mean, but not beyond the values; never empty.
std::pair<double, double> range_of(const torch::Tensor& values) {
  const auto [mean, std] = mean_and_std(values);
  const double low = std::max(values.min().item<double>(), mean - 4 * std);
  const double high = std::min(values.max().item<double>(), mean + 4 * std);
  return high > low ? std::pair(low, high) : std::pair(low - 0.5, low + 0.5);
}

// To three decimals.
double rounded(double value) { return std::round(value * 1000) / 1000; }

// One coordinate of all points in the plane.
std::vector<double> coordinate(const std::vector<float>& plane, int axis) {
  std::vector<double> out;
  for (size_t i = axis; i < plane.size(); i += 2) out.push_back(rounded(plane[i]));
  return out;
}

}  // namespace

int64_t Diagnostics::samples() const {
  return std::min(options_.diagnostic_samples, images_.count());
}

Row Diagnostics::make(const char* kind) const {
  Row row = maker_.make(kind, "none", {.mode = mode_, .corruption = corruption_});
  row["severity"] = nullptr;
  row["limit"] = samples();
  const auto& severities = options_.severities;
  row["data_hash"] =
      images_.hash(corruption_, *std::max_element(severities.begin(), severities.end()));
  return row;
}

Row Diagnostics::tsne_row() const {
  Row row = make("tsne");
  row["severities"] = options_.severities;
  return row;
}

void Diagnostics::run_network(const train::Model& model, const InferenceOptions& inference,
                              const Advance& advance) {
  const models::NetworkOptions& expected = model.network->options();
  const torch::Tensor example =
      torch::zeros({2, expected.channels, expected.image_size, expected.image_size})
          .to(model.network->parameters().front().device());
  const std::vector<ActivationLayer> layers = activation_layers(*model.network, example);
  class_names_ = model.card.class_names;
  for (const int severity : options_.severities) {
    const data::Split split = images_.read(corruption_, severity).slice(0, samples());
    std::vector<Neuron> neurons = choose_neurons(layers);
    InferenceOutput output;
    observe_neurons(*model.network, static_cast<int64_t>(layers.size()), &neurons,
                    [&] { output = infer(model, split, inference, {}, advance); });
    add_embeddings(split, output.embedding, severity);
    add_histograms(neurons, severity);
    if (severity == options_.severities.back()) add_contexts(model, neurons);
  }
}

void Diagnostics::add_embeddings(const data::Split& split, const torch::Tensor& embedding,
                                 int severity) {
  const torch::Tensor values = embedding.to(torch::kCPU, torch::kFloat).contiguous();
  features_ = values.size(1);
  embeddings_.insert(embeddings_.end(), values.data_ptr<float>(),
                     values.data_ptr<float>() + values.numel());
  for (int64_t i = 0; i < split.count(); ++i) {
    labels_.push_back(split.labels[i]);
    severities_.push_back(severity);
    indices_.push_back(i);
  }
}

void Diagnostics::add_histograms(const std::vector<Neuron>& neurons, int severity) {
  const bool first = ranges_.empty();
  for (size_t i = 0; i < neurons.size(); ++i) {
    const torch::Tensor values[] = {torch::cat(neurons[i].inputs), torch::cat(neurons[i].outputs)};
    for (int side = 0; side < 2; ++side) {
      if (first) ranges_.push_back(range_of(values[side]));
      const auto [low, high] = ranges_[2 * i + side];
      const auto [mean, std] = mean_and_std(values[side]);
      add_histogram(neurons[i], side == 0 ? "preactivation" : "activation", severity,
                    histogram(values[side], low, high), mean, std, samples());
    }
  }
}

// The running contexts, as training left them, of neurons in quantile activations. Channels that
// are ranked in their image have none.
void Diagnostics::add_contexts(const train::Model& model, const std::vector<Neuron>& neurons) {
  const auto modules = model.network->named_modules();
  for (const Neuron& neuron : neurons) {
    const auto* found = modules.find(neuron.layer.name);
    if (!found || neuron.layer.kind != "qact") continue;
    auto* activation = (*found)->as<nn::QuantileActivation>();
    if (neuron.channel < activation->image_channels()) continue;
    const torch::Tensor counts = activation->context[neuron.channel].to(torch::kCPU);
    const auto [low, high] = context_range(counts);
    add_histogram(neuron, "context", nullptr, context_histogram(counts, low, high), NAN, NAN, 0);
  }
}

void Diagnostics::add_histogram(const Neuron& neuron, const char* what, Row severity,
                                const Histogram& counts, double mean, double std, int64_t n) {
  Row row = make("histogram");
  if (severity == 0) row["corruption"] = "none";
  row["severity"] = std::move(severity);
  row["layer"] = neuron.layer.name;
  row["layer_index"] = neuron.layer.index;
  row["layer_kind"] = neuron.layer.kind;
  row["what"] = what;
  row["channel"] = neuron.channel;
  Row bars = Row::array();
  for (const double count : counts.counts) bars.push_back(rounded(count));
  histograms_.push_back(maker_.finish(row, n,
                                      {{"low", counts.low},
                                       {"high", counts.high},
                                       {"counts", bars},
                                       {"below", counts.below},
                                       {"above", counts.above},
                                       {"mean", mean},
                                       {"std", std}}));
}

Rows Diagnostics::rows() const {
  metrics::TsneOptions options;
  options.threads = options_.threads;
  const std::vector<float> plane = metrics::tsne(embeddings_, features_, options);
  Rows rows = histograms_;
  rows.push_back(maker_.finish(tsne_row(), static_cast<int64_t>(labels_.size()),
                               {{"per_severity", samples()},
                                {"perplexity", options.perplexity},
                                {"class_names", class_names_},
                                {"x", coordinate(plane, 0)},
                                {"y", coordinate(plane, 1)},
                                {"label", labels_},
                                {"point_severity", severities_},
                                {"index", indices_}}));
  return rows;
}

}  // namespace qact::eval
