// Gloo, which carries CPU tensors.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace qact::dist {

// Gloo's part of the group. An error in a build without Gloo's headers, which runs one process.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds patience);

}  // namespace qact::dist
