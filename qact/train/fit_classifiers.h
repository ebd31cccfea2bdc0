// Fits the classifiers of classifiers.h to embeddings.
#pragma once

#include <torch/types.h>

#include <functional>

#include "qact/train/classifiers.h"

namespace qact::train {

struct LabelledEmbeddings {
  torch::Tensor embedding;  // (N, D)
  torch::Tensor labels;     // (N) int64
};

struct FitOptions {
  uint64_t seed = 0;  // draws the quantile classifier's first weights and its batches
  nn::ClassPrior prior = nn::ClassPrior::quantile;
};

// Asked now and then; false stops the work.
using ShouldContinue = std::function<bool()>;

// Fits both on the embeddings' device. Features are standardised while fitting; the weights that
// are returned take them as they are.
//
//   quantile   Adam on batches of 512 or 20 a class, a cosine over at most 30 rounds, each an epoch
//              or 15 steps. Early stopping after 5 rounds without a lower loss on `validation`; the
//              weights of the best round are returned
//   logistic   L-BFGS on the mean cross-entropy + |W|^2 / 2N, until no entry of the gradient
//              exceeds 1e-5, for at most 1,000 iterations. Does not use `validation`
//
// Returns empty classifiers once `should_continue` is false.
Classifiers fit_classifiers(const LabelledEmbeddings& train, const LabelledEmbeddings& validation,
                            int64_t classes, const FitOptions& options = {},
                            const ShouldContinue& should_continue = {});

}  // namespace qact::train
