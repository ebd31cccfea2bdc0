// How the ranks of one attempt find each other in a store that outlives attempts: torchrun's agent
// serves it until all is over, so what ranks of an earlier attempt wrote may still be there.
#pragma once

#include <chrono>
#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace qact::dist {

using Store = c10::intrusive_ptr<c10d::Store>;

struct Attempt {
  int64_t number = 0;  // from 1, in this store
  Store store;         // of this attempt alone: its keys are new
};

// Rank 0 begins a new attempt; the others wait until it has told them which. torchrun's own count
// of restarts is no such number: each agent counts those that its own ranks failed in, so that it
// differs between machines. Throws where rank 0 does not come.
Attempt join_attempt(const Store& shared, int rank, std::chrono::milliseconds patience);

// Waits for all ranks; throws where one does not come, and names it. Returns whether they have been
// started before: `restarted` of any rank, or an earlier attempt in this store.
bool wait_for_all(const Store& shared, const Attempt& attempt, int rank, int size, bool restarted,
                  std::chrono::milliseconds patience);

}  // namespace qact::dist
