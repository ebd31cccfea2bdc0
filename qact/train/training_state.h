// state.safetensors: all that a run needs to resume as if it had never stopped. This file alone
// says how far a run is; the other files of its folder are written before it.
//
// Random numbers are functions of the seed and the epoch or the step. So no generator has a state
// to save, and the order of an epoch is drawn again from its number.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "qact/models/network.h"
#include "qact/train/optimiser.h"

namespace qact::train {

void save_training_state(const std::filesystem::path& path, const models::Network& network,
                         const Optimiser& optimiser, const nlohmann::ordered_json& progress);

// Loads the network and the optimiser, and returns the progress. Throws where the file is damaged
// (it has a checksum) or belongs to another network. `check` gets the progress before anything is
// loaded, and throws where it belongs to another run.
nlohmann::ordered_json load_training_state(
    const std::filesystem::path& path, models::Network& network, Optimiser& optimiser,
    const std::function<void(const nlohmann::ordered_json& progress)>& check);

}  // namespace qact::train
