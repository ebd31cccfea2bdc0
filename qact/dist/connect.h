// From torchrun's environment to a world, and what is said when a rank fails.
#pragma once

#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "qact/dist/environment.h"
#include "qact/dist/world.h"

namespace qact::dist {

struct Explanation {
  bool silent = false;    // another rank has said why all end
  std::string text = {};  // instead of the exception's own; empty: that one
};

// The connection of this process to the others while it lives. The group is registered as kWorld:
// CPU tensors go over Gloo, CUDA tensors over NCCL, or over Gloo where this build has no NCCL or
// processes share a GPU.
class Connection {
 public:
  explicit Connection(const Environment& environment);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for all ranks. `cuda`: this process computes on the GPU of its local rank, from now on
  // the current one.
  const World& open(bool cuda);
  // What to print about an exception that ended this rank. To be asked once nothing else of this
  // rank uses the world, and before the connection ends: the other ranks then end, too.
  Explanation explain(const std::exception& error);
  // The same where no exception did, after a signal: this rank still waits for others.
  Explanation explain_waiting() const;

 private:
  bool speaks_for_all() const;
  void leave();
  void wait_until_all_asked() const;
  std::string lost_rank() const;
  std::string end_of(const std::string& rank) const;

  const Environment environment_;
  c10::intrusive_ptr<c10d::Store> shared_store_;  // with what earlier attempts left
  c10::intrusive_ptr<c10d::Store> store_;         // of this attempt; null until rank 0 has come
  World world_;
  std::vector<std::string> processes_;  // by rank (process.h)
};

}  // namespace qact::dist
