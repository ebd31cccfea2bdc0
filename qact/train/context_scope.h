// Which values are ranked and normalised together when several ranks train.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "qact/dist/world.h"

namespace qact::train {

// What --context-scope auto stands for.
std::string resolved_context_scope(const std::string& scope);

// Joins the contexts and the batch statistics of all ranks (`world`), or keeps them apart
// (`batch`). One rank alone has nothing to join.
void set_context_scope(torch::nn::Module& network, const std::string& scope,
                       const dist::World& world);

}  // namespace qact::train
