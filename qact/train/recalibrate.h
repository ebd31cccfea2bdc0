// After training: running statistics and contexts that fit the final weights.
#pragma once

#include <functional>

#include "qact/models/network.h"
#include "qact/train/run_folder.h"
#include "qact/train/training_data.h"

namespace qact::train {

// Replaces the running statistics and contexts of `network` by their means over the batches of
// `loader`, as a cumulative average. While weights change, running ones lag behind. Each batch is
// its own context here, as in training. False once `should_continue`, asked after each batch, is;
// they are then those of the batches so far.
bool recalibrate(models::Network& network, PrefetchingLoader& loader,
                 const std::function<bool()>& should_continue);

// Recalibrates the last and the best model of the run with the training images, augmented as in
// training: the weights fit those. Writes their files, unless that was done already. False once
// `should_continue` is; what was written until then stays.
bool recalibrate_models(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                        const std::function<bool()>& should_continue);

}  // namespace qact::train
