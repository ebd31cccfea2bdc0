// Process groups by their names, as c10d's functional collectives take them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "qact/core/world.h"

namespace qact::ops {

// Null for an empty name: this process alone.
using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;
// Throws for a name that is not registered; `op` is who asks.
ProcessGroup process_group(const char* op, std::string_view name);

core::Rank rank_in(const ProcessGroup& group);

// Reductions that are under way, in place, over all ranks. What they reduce must stay until wait()
// has returned. The destructor waits as well, so that an error in between frees nothing that other
// ranks are still adding up.
class PendingReduction {
 public:
  PendingReduction() = default;
  PendingReduction(PendingReduction&&) = default;
  PendingReduction& operator=(PendingReduction&&) = delete;
  ~PendingReduction();

  void start(const ProcessGroup& group, const at::Tensor& tensor, c10d::ReduceOp::RedOpType by);
  void wait();

 private:
  struct Started {
    at::Tensor tensor;
    c10::intrusive_ptr<c10d::Work> work;
  };
  std::vector<Started> started_;
};

// All reductions of a round; `device` is where it lies.
PendingReduction start_all_reduce(const ProcessGroup& group, const core::Round& round,
                                  at::Device device = at::kCPU);
PendingReduction start_all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor);
// Waited for.
void all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor);

}  // namespace qact::ops
