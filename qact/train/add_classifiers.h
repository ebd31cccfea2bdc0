// The last act of a training run: classifiers on the embeddings of the networks it saved.
#pragma once

#include <functional>

#include "qact/train/run_folder.h"
#include "qact/train/training_data.h"

namespace qact::train {

// Fits classifiers to the training images' embeddings, in eval(), by kept contexts and by the
// batch's own, and writes them into the last and the best model's file, where they are not yet
// there. The quantile classifier is stopped by the images held out for validation; where there are
// none, by a tenth of the training images. False once `go_on` said so; what was written till then
// stays.
bool add_classifiers(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                     const std::function<bool()>& go_on);

}  // namespace qact::train
