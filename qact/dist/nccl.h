// NCCL, which carries CUDA tensors.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace qact::dist {

bool has_nccl();  // this build
// NCCL's part of the group; null in a build without it.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size);

}  // namespace qact::dist
