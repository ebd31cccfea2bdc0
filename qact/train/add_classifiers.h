// The last part of a training run: fits classifiers to the embeddings of the networks that it
// saved.
#pragma once

#include "qact/train/fit_classifiers.h"
#include "qact/train/run_folder.h"
#include "qact/train/training_data.h"

namespace qact::train {

// Fits classifiers to the embeddings of the training images, in eval(), in the running contexts and
// in the batch's own, and writes them into the files of the last and the best model, unless they
// are there already. The validation images decide the early stopping of the quantile classifier;
// without any, a tenth of the training images does. False once `should_continue` is; what was
// written until then stays.
bool add_classifiers(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                     const ShouldContinue& should_continue);

}  // namespace qact::train
