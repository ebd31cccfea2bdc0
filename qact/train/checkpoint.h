// state.safetensors: all that a run needs to go on as if it had never stopped. The one file
// that decides where a run is; whatever else is in its folder is written before it.
//
// What is random is a function of the seed and the epoch or the step, so that no generator
// has a state to keep, and the order of an epoch is drawn again from its number.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "qact/models/network.h"
#include "qact/train/optimiser.h"

namespace qact::train {

// Throws where a weight or a running statistic is not finite, naming it: such a network is of
// no use to anyone, and the one on disk may be.
void check_finite(const models::Network& network);

void save_state(const std::filesystem::path& path, const models::Network& network,
                const Optimiser& optimiser, const nlohmann::ordered_json& progress);

// Into the network and the optimiser; returns the progress. Throws where the file is damaged
// (it carries a checksum) or of another network. `check` sees the progress before anything is
// loaded, and throws where it is another run's.
nlohmann::ordered_json load_state(
    const std::filesystem::path& path, models::Network& network, Optimiser& optimiser,
    const std::function<void(const nlohmann::ordered_json& progress)>& check);

}  // namespace qact::train
