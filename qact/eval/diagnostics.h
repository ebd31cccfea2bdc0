// Rows that show what a corruption does inside a network: t-SNE of its embeddings, and
// histograms of a few neurons.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qact/eval/neurons.h"
#include "qact/eval/plan.h"

namespace qact::eval {

// Equal bins from low to high.
struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;
  double below = 0, above = 0;
};
inline constexpr int kHistogramBins = 50;

Histogram histogram(const torch::Tensor& values, double low, double high);
// A neuron's kept context, of core/context.h's 256 bins, each spread evenly.
Histogram context_histogram(const torch::Tensor& counts, double low, double high);

// The edges of its bins that all but the outer thousandths of a context lie between.
std::pair<double, double> context_range(const torch::Tensor& counts);

// One corruption at all severities asked for, in one mode, with the first images of each. The
// tsne row is the last of them: where it is, all are.
class Diagnostics {
 public:
  Diagnostics(const EvaluateOptions& options, const TestImages& images, const RowMaker& maker,
              std::string corruption, std::string mode)
      : options_(options),
        images_(images),
        maker_(maker),
        corruption_(std::move(corruption)),
        mode_(std::move(mode)) {}

  results::Row tsne_row() const;  // without its results
  int64_t samples() const;        // of each severity

  // The network's part, and what is left once it is free for others.
  void pass(const train::Model& model, const Inference& how, const Advance& advance);
  results::Rows rows() const;

 private:
  results::Row make(const char* kind) const;
  void add_embeddings(const data::Split& split, const torch::Tensor& embedding, int severity);
  void add_histograms(const std::vector<Neuron>& neurons, int severity);
  void add_contexts(const train::Model& model, const std::vector<Neuron>& neurons);
  void add_histogram(const Neuron& neuron, const char* what, results::Row severity,
                     const Histogram& counts, double mean, double deviation, int64_t n);

  const EvaluateOptions& options_;
  const TestImages& images_;
  const RowMaker& maker_;
  const std::string corruption_, mode_;

  std::vector<std::string> class_names_;
  std::vector<float> embeddings_;
  std::vector<int64_t> labels_, severities_, indices_;
  int64_t features_ = 0;
  // Of each neuron's values before and after at the first severity: all share its bins.
  std::vector<std::pair<double, double>> ranges_;
  results::Rows histograms_;
};

}  // namespace qact::eval
