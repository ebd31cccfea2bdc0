// Layers over several processes: the ranks of a process group take their contexts together.
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace qact::nn {

// Sets it on every layer of a network that would take its context from the batch: quantile
// activations go from the scope batch to world, batch norms are synchronised, the batch half of
// InstanceBatchNorm, too. Channels that are ranked in their image or in groups of images stay so.
// `name` is what c10d::resolve_process_group knows the group by; empty: back to this process alone.
// Throws for a quantile activation without both norms, whose context cannot be shared.
void set_process_group(torch::nn::Module& network, const std::string& name);

}  // namespace qact::nn
