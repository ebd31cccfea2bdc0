// Process groups by their names, as c10d's functional collectives take them.
#pragma once

#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "qact/core/world.h"

namespace qact::ops {

// Null for an empty name: this process alone.
using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;
// Throws for a name that is not registered; `op` is who asks.
ProcessGroup process_group(const char* op, std::string_view name);

core::Rank rank_in(const ProcessGroup& group);

// In place, over all ranks; `device` is where the round lies. Its reductions are started together.
void all_reduce(const ProcessGroup& group, const core::Round& round, at::Device device = at::kCPU);
void all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor);

}  // namespace qact::ops
