// The accuracy and the loss on the validation images.
#pragma once

#include <torch/types.h>

#include <functional>
#include <optional>

#include "qact/losses/loss.h"
#include "qact/models/network.h"
#include "qact/train/config.h"
#include "qact/train/training_data.h"

namespace qact::train {

struct Validation {
  double accuracy = 0, loss = 0;
};

// `forward` is the network's forward pass in eval(). The accuracy of cross-entropy is that of the
// logits. The other losses train no classifier: there it is the share of images whose nearest other
// image, by embedding, has their label. None once `should_continue`, asked after each batch, is
// false.
std::optional<Validation> validate(
    const std::function<models::NetworkOutput(const torch::Tensor& images)>& forward,
    const losses::Loss& loss, const TrainConfig& config, TrainingData& data,
    const std::function<bool()>& should_continue);

}  // namespace qact::train
