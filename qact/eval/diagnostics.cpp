#include "qact/eval/diagnostics.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "qact/core/context.h"
#include "qact/metrics/tsne.h"
#include "qact/nn/quantile_activation.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(const torch::Tensor& values) {
  const torch::Tensor wide = values.to(torch::kDouble);
  return {wide.mean().item<double>(), wide.std(/*unbiased=*/false).item<double>()};
}

// Four deviations about the mean, not beyond the values; some width in any case.
std::pair<double, double> range_of(const torch::Tensor& values) {
  const auto [mean, deviation] = moments_of(values);
  const double low = std::max(values.min().item<double>(), mean - 4 * deviation);
  const double high = std::min(values.max().item<double>(), mean + 4 * deviation);
  return high > low ? std::pair(low, high) : std::pair(low - 0.5, low + 0.5);
}

// To three decimals.
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::vector<double> short_numbers(const std::vector<float>& plane, int column) {
  std::vector<double> out;
  for (size_t i = column; i < plane.size(); i += 2) out.push_back(rounded(plane[i]));
  return out;
}

}  // namespace

Histogram histogram(const torch::Tensor& values, double low, double high) {
  Histogram out{low, high, std::vector<double>(kHistogramBins), 0, 0};
  const float* const data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (data[i] < low) {
      out.below += 1;
    } else if (data[i] > high) {
      out.above += 1;
    } else {
      const int bin = static_cast<int>((data[i] - low) / (high - low) * kHistogramBins);
      out.counts[std::min(bin, kHistogramBins - 1)] += 1;
    }
  }
  return out;
}

Histogram context_histogram(const torch::Tensor& counts, double low, double high) {
  Histogram out{low, high, std::vector<double>(kHistogramBins), 0, 0};
  const double width = (high - low) / kHistogramBins;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    const double count = static_cast<double>(counts[bin].item<int64_t>()) / core::kContextUnit;
    const double from = core::context_edge(bin), to = core::context_edge(bin + 1);
    if (count == 0) continue;
    if (std::isinf(from) || std::isinf(to)) {
      (std::isinf(from) ? out.below : out.above) += count;
      continue;
    }
    const auto share = [&](double left, double right) {
      return count * std::max(0.0, std::min(to, right) - std::max(from, left)) / (to - from);
    };
    out.below += share(from, low);
    out.above += share(high, to);
    for (int b = 0; b < kHistogramBins; ++b) {
      out.counts[b] += share(low + b * width, low + (b + 1) * width);
    }
  }
  return out;
}

std::pair<double, double> context_range(const torch::Tensor& counts) {
  const int64_t* const data = counts.data_ptr<int64_t>();
  const double total = counts.sum().item<double>();
  int first = core::kContextBins / 2, last = first - 1;
  double before = 0;
  for (int bin = 0; bin < core::kContextBins; ++bin) {
    const double with = before + static_cast<double>(data[bin]);
    if (with > 0.001 * total && before < 0.999 * total) {
      if (last < first) first = bin;
      last = bin;
    }
    before = with;
  }
  // The outermost bins have no end.
  first = std::clamp(first, 1, core::kContextBins - 2);
  last = std::clamp(last, first, core::kContextBins - 2);
  return {core::context_edge(first), core::context_edge(last + 1)};
}

int64_t Diagnostics::samples() const {
  return std::min(options_.diagnostic_samples, images_.count());
}

Row Diagnostics::make(const char* kind) const {
  Row row = maker_.make(kind, mode_, "none", corruption_, 0);
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

void Diagnostics::pass(const train::Model& model, const Inference& how, const Advance& advance) {
  const models::NetworkOptions& made_for = model.network->options();
  const torch::Tensor example =
      torch::zeros({2, made_for.channels, made_for.image_size, made_for.image_size})
          .to(model.network->parameters().front().device());
  const std::vector<ActivationSite> sites = activation_sites(*model.network, example);
  class_names_ = model.card.class_names;
  for (const int severity : options_.severities) {
    const data::Split split = images_.read(corruption_, severity).slice(0, samples());
    std::vector<Neuron> neurons = choose_neurons(sites);
    Outputs outputs;
    watch_neurons(*model.network, static_cast<int64_t>(sites.size()), &neurons,
                  [&] { outputs = infer(model, split, how, {}, advance); });
    add_embeddings(split, outputs.embedding, severity);
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
    const torch::Tensor values[] = {torch::cat(neurons[i].before), torch::cat(neurons[i].after)};
    for (int side = 0; side < 2; ++side) {
      if (first) ranges_.push_back(range_of(values[side]));
      const auto [low, high] = ranges_[2 * i + side];
      const auto [mean, deviation] = moments_of(values[side]);
      add_histogram(neurons[i], side == 0 ? "preactivation" : "activation", severity,
                    histogram(values[side], low, high), mean, deviation, samples());
    }
  }
}

// As training left them: the quantile activations that the neurons belong to.
void Diagnostics::add_contexts(const train::Model& model, const std::vector<Neuron>& neurons) {
  const auto modules = model.network->named_modules();
  for (const Neuron& neuron : neurons) {
    const auto* found = modules.find(neuron.site.layer);
    if (!found || neuron.site.kind != "qact") continue;
    auto* activation = (*found)->as<nn::QuantileActivation>();
    const torch::Tensor counts = activation->context[neuron.channel].to(torch::kCPU);
    const auto [low, high] = context_range(counts);
    add_histogram(neuron, "context", nullptr, context_histogram(counts, low, high), NAN, NAN, 0);
  }
}

void Diagnostics::add_histogram(const Neuron& neuron, const char* what, Row severity,
                                const Histogram& counts, double mean, double deviation, int64_t n) {
  Row row = make("histogram");
  if (severity == 0) row["corruption"] = "none";
  row["severity"] = std::move(severity);
  row["layer"] = neuron.site.layer;
  row["layer_index"] = neuron.site.index;
  row["layer_kind"] = neuron.site.kind;
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
                                       {"std", deviation}}));
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
                                {"x", short_numbers(plane, 0)},
                                {"y", short_numbers(plane, 1)},
                                {"label", labels_},
                                {"point_severity", severities_},
                                {"index", indices_}}));
  return rows;
}

}  // namespace qact::eval
