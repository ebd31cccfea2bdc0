// The threads of a grid: those of a block are fibers that give way at barriers and warp intrinsics,
// blocks of a cluster take turns, and clusters run one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "tests/core/cuda/emulator/fiber.h"
#include "tests/core/cuda/emulator/types.h"
#include "tests/core/cuda/emulator/worker.h"

namespace qact::emulator {

// Who goes on first wherever several may: lanes, warps, blocks. Shuffled, threads also give way
// at some atomics and loads, and warps to each other before they must.
struct Schedule {
  enum Order { in_order, reversed, shuffled };
  Order order = in_order;
  uint64_t seed = 0;

  std::vector<int> first(size_t count) const;  // the order to begin with
  void next(std::vector<int>& order, std::mt19937_64& random) const;
};

inline constexpr int kLanes = 32;
using Lanes = std::array<uint64_t, kLanes>;
using Place = std::source_location;

struct Grid {
  dim3 blocks, threads;
  unsigned cluster = 1;  // blocks
  size_t shared = 0;     // bytes of dynamic shared memory
  std::function<void()> kernel;
  Schedule schedule;
  bool waits = false;  // the grid before it is not done: cudaGridDependencySynchronize() waits
};

class Cluster;

// One block, which steps on until all of its threads wait for others.
class Block {
 public:
  Block(const Grid& grid, Cluster& cluster, uint3 index, unsigned rank, Worker& worker);
  Block(const Block&) = delete;

  bool step();  // whether any thread went on
  bool done() const { return alive_ == 0; }
  std::string waiting() const;  // for what, in words

  // By the running thread:
  enum Kind { sync, sync_or, sync_and };
  bool barrier(Kind kind, bool value, const Place& at);
  const Lanes& exchange(unsigned mask, uint64_t value, const Place& at);  // all lanes' values
  void cluster_arrive();
  void cluster_wait(const Place& at);
  void wait_for_grid(const Place& at);
  void give_way();  // now and then, where the schedule is shuffled
  void* in_block(const void* own, unsigned rank);
  unsigned lane() const { return running_ % kLanes; }
  unsigned rank() const { return rank_; }

 private:
  enum State : uint8_t { ready, at_barrier, at_warp, at_cluster, at_grid, ended };
  struct Thread {
    Fiber fiber;
    State state = ready;
    Place at;
    unsigned phase = 0;  // of the cluster's barrier, when it arrived
  };
  struct Warp {
    Lanes offered{}, taken{};
    unsigned arrived = 0, alive = 0;
    Place at;
  };

  static void run_thread();
  [[noreturn]] void stop();
  void wait(State state, const Place& at);
  void meet(Place& first, bool is_first, const Place& at);
  void release_barrier();
  void release_warp(Warp& warp, unsigned index);
  bool can_go_on(const Thread& thread) const;
  bool step_warp(unsigned warp);

  const Grid& grid_;
  Cluster& cluster_;
  const uint3 index_;
  const unsigned rank_;
  Worker& worker_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned alive_, arrived_ = 0, running_ = 0;
  bool any_ = false, all_ = true, found_any_ = false, found_all_ = false;
  Place at_;
  std::vector<int> lane_order_, warp_order_;
  std::mt19937_64 random_;
};

// Blocks that run together, each with a worker of its own; a block without a cluster is one of one.
class Cluster {
 public:
  Cluster(const Grid& grid, unsigned index);

  // Until all is done, or waits for the grid before it. Throws where threads wait for ever.
  void run();

 private:
  friend class Block;
  void release();

  const Grid& grid_;
  std::vector<LeasedWorker> workers_;
  std::vector<std::unique_ptr<Block>> blocks_;
  unsigned alive_, arrived_ = 0, phase_ = 0;  // threads, at the cluster's barrier
  std::string error_;
};

// The block that runs now.
Block& here();

}  // namespace qact::emulator
