// Rows that show what a corruption does inside a network: t-SNE of its embeddings, and histograms
// of a few neurons.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qact/eval/histogram.h"
#include "qact/eval/neurons.h"
#include "qact/eval/row_maker.h"

namespace qact::eval {

// Of one corruption in one mode, with the first images at each severity: the stream single, without
// adaptation. The row of t-SNE is
// written last: where it is present, all are.
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
  int64_t samples() const;        // images of each severity

  // Runs the network and keeps what rows() needs of it; rows() itself does not need the network.
  void run_network(const train::Model& model, const InferenceOptions& inference,
                   const Advance& advance);
  results::Rows rows() const;

 private:
  results::Row make(const char* kind) const;
  void add_embeddings(const data::Split& split, const torch::Tensor& embedding, int severity);
  void add_histograms(const std::vector<Neuron>& neurons, int severity);
  void add_contexts(const train::Model& model, const std::vector<Neuron>& neurons);
  void add_histogram(const Neuron& neuron, const char* what, results::Row severity,
                     const Histogram& counts, double mean, double std, int64_t n);

  const EvaluateOptions& options_;
  const TestImages& images_;
  const RowMaker& maker_;
  const std::string corruption_, mode_;

  std::vector<std::string> class_names_;
  std::vector<float> embeddings_;
  std::vector<int64_t> labels_, severities_, indices_;
  int64_t features_ = 0;
  // Of each neuron's inputs and outputs at the first severity, whose bins all severities share.
  std::vector<std::pair<double, double>> ranges_;
  results::Rows histograms_;
};

}  // namespace qact::eval
