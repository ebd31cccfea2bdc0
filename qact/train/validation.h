// The accuracy and the loss on the validation images.
#pragma once

#include <torch/types.h>

#include <functional>
#include <optional>

#include "qact/dist/world.h"
#include "qact/losses/loss.h"
#include "qact/models/network.h"
#include "qact/train/config.h"
#include "qact/train/training_data.h"

namespace qact::train {

// What a loss is computed from: this rank's share of the batch, or the whole batch, gathered from
// all ranks, where the loss compares images with each other. Each rank then has the same loss.
losses::LossInput loss_input(const models::NetworkOutput& output, const torch::Tensor& labels,
                             const losses::Loss& loss, const dist::World& world);

struct Validation {
  double accuracy = 0, loss = 0;
};

// `forward` is the network's forward pass in eval(), of this rank's share of a batch, which may be
// empty; the result is that of all ranks. The accuracy of cross-entropy is that of the
// logits. The other losses train no classifier: there it is the share of images whose nearest other
// image, by embedding, has their label. None once `should_continue`, asked after each batch, is
// false.
std::optional<Validation> validate(
    const std::function<models::NetworkOutput(const torch::Tensor& images)>& forward,
    const losses::Loss& loss, const TrainConfig& config, TrainingData& data,
    const dist::World& world, const std::function<bool()>& should_continue);

}  // namespace qact::train
