// The network that a configuration describes.
#pragma once

#include "qact/models/network.h"
#include "qact/train/config.h"

namespace qact::train {

// All but what the images decide: their size and channels, and the number of classes.
models::NetworkOptions network_options(const TrainConfig& config);

// Throws std::invalid_argument where the network cannot be made as `config`, which is resolved,
// says, whatever the images are. It is made on trial, which takes a fraction of a second.
void check_network(const TrainConfig& config);

}  // namespace qact::train
