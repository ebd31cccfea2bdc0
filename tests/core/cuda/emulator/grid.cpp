#include "tests/core/cuda/emulator/grid.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace qact::emulator {
namespace {

Block* running_block = nullptr;

std::string text(const Place& at) {
  const std::string file = at.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(at.line());
}

}  // namespace

Block& here() { return *running_block; }

std::vector<int> Schedule::first(size_t count) const {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), 0);
  if (order == reversed) std::reverse(out.begin(), out.end());
  return out;
}

void Schedule::next(std::vector<int>& of, std::mt19937_64& random) const {
  if (order == shuffled) std::shuffle(of.begin(), of.end(), random);
}

Block::Block(const Grid& grid, Cluster& cluster, uint3 index, unsigned rank, Worker& worker)
    : grid_(grid),
      cluster_(cluster),
      index_(index),
      rank_(rank),
      worker_(worker),
      threads_(grid.threads.x),
      warps_((grid.threads.x + kLanes - 1) / kLanes),
      alive_(grid.threads.x),
      lane_order_(grid.schedule.first(kLanes)),
      warp_order_(grid.schedule.first(warps_.size())),
      random_(grid.schedule.seed + index.x + 1000003ull * index.y) {
  for (unsigned t = 0; t < alive_; ++t) {
    warps_[t / kLanes].alive |= 1u << t % kLanes;
    threads_[t].fiber.prepare(worker.stack(static_cast<int>(t)), Worker::stack_bytes(), run_thread);
  }
  worker_.run([&] { worker_.poison_shared(grid.shared); });
}

void Block::run_thread() {
  Block& block = here();
  Thread& thread = block.threads_[block.running_];
  thread.fiber.entered();
  block.grid_.kernel();
  thread.state = ended;
  --block.alive_;
  --block.cluster_.alive_;
  block.cluster_.release();
  Warp& warp = block.warps_[block.running_ / kLanes];
  warp.alive &= ~(1u << block.lane());
  block.release_warp(warp, block.running_ / kLanes);
  block.release_barrier();
  thread.fiber.suspend(/*for_ever=*/true);
}

// After cluster_.error_ was set: nothing of the grid goes on.
void Block::stop() {
  threads_[running_].fiber.suspend(/*for_ever=*/true);
  __builtin_unreachable();
}

void Block::wait(State state, const Place& at) {
  Thread& thread = threads_[running_];
  thread.state = state;
  thread.at = at;
  thread.fiber.suspend();
}

// Threads that wait for each other are at the same place of the program.
void Block::meet(Place& first, bool is_first, const Place& at) {
  if (is_first) first = at;
  const bool same_file = first.file_name() == at.file_name() || text(first) == text(at);
  if (first.line() != at.line() || !same_file) {
    cluster_.error_ = "threads meet at two places, " + text(first) + " and " + text(at) + ":";
    stop();
  }
}

bool Block::barrier(Kind kind, bool value, const Place& at) {
  meet(at_, arrived_ == 0, at);
  any_ |= value;
  all_ &= value;
  ++arrived_;
  threads_[running_].state = at_barrier;
  release_barrier();
  wait(threads_[running_].state, at);
  return kind == sync_or ? found_any_ : found_all_;
}

// Nobody arrives a second time before all have left: what was found stays until then.
void Block::release_barrier() {
  if (arrived_ == 0 || arrived_ < alive_) return;
  for (Thread& thread : threads_) {
    if (thread.state == at_barrier) thread.state = ready;
  }
  found_any_ = any_;
  found_all_ = all_;
  any_ = false;
  all_ = true;
  arrived_ = 0;
}

const Lanes& Block::exchange(unsigned mask, uint64_t value, const Place& at) {
  if (mask != 0xffffffffu) {
    cluster_.error_ = "expected all lanes in the mask at " + text(at) + ":";
    stop();
  }
  const unsigned index = running_ / kLanes;
  Warp& warp = warps_[index];
  meet(warp.at, warp.arrived == 0, at);
  warp.offered[lane()] = value;
  warp.arrived |= 1u << lane();
  threads_[running_].state = at_warp;
  release_warp(warp, index);
  wait(threads_[running_].state, at);
  return warp.taken;
}

void Block::release_warp(Warp& warp, unsigned index) {
  if (warp.arrived == 0 || (warp.alive & ~warp.arrived) != 0) return;
  warp.taken = warp.offered;
  warp.arrived = 0;
  for (unsigned t = index * kLanes; t < std::min<size_t>((index + 1) * kLanes, threads_.size());
       ++t) {
    if (threads_[t].state == at_warp) threads_[t].state = ready;
  }
}

void Block::cluster_arrive() {
  threads_[running_].phase = cluster_.phase_;
  ++cluster_.arrived_;
  cluster_.release();
}

void Block::cluster_wait(const Place& at) { wait(at_cluster, at); }

void Block::wait_for_grid(const Place& at) {
  if (grid_.waits) wait(at_grid, at);
}

void Block::give_way() {
  if (grid_.schedule.order == Schedule::shuffled && random_() % 16 == 0) wait(ready, {});
}

void* Block::in_block(const void* own, unsigned rank) {
  if (rank < cluster_.blocks_.size() && !cluster_.blocks_[rank]->done()) {
    return Worker::translate(own, worker_, cluster_.blocks_[rank]->worker_);
  }
  cluster_.error_ = "block " + std::to_string(rank) + " of the cluster has ended, or never was:";
  stop();
}

bool Block::can_go_on(const Thread& thread) const {
  return thread.state == ready || (thread.state == at_cluster && thread.phase != cluster_.phase_) ||
         (thread.state == at_grid && !grid_.waits);
}

bool Block::step_warp(unsigned warp) {
  bool any = false;
  grid_.schedule.next(lane_order_, random_);
  for (const int lane : lane_order_) {
    const unsigned t = warp * kLanes + lane;
    if (t >= threads_.size() || !cluster_.error_.empty() || !can_go_on(threads_[t])) continue;
    threads_[t].state = ready;
    running_ = t;
    threadIdx = {t, 0, 0};
    threads_[t].fiber.resume();
    any = true;
  }
  return any;
}

bool Block::step() {
  bool any = false;
  worker_.run([&] {
    running_block = this;
    blockIdx = index_;
    blockDim = grid_.threads;
    gridDim = grid_.blocks;
    const bool shuffled = grid_.schedule.order == Schedule::shuffled;
    for (bool again = true; again;) {
      again = false;
      grid_.schedule.next(warp_order_, random_);
      for (const int warp : warp_order_) {
        while (step_warp(warp)) {
          again = true;
          if (shuffled && random_() % 4 == 0) break;
        }
      }
      any |= again;
    }
    if (!done()) return;
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (!worker_.stack_is_intact(static_cast<int>(t))) cluster_.error_ = "a stack overflowed";
    }
    if (!worker_.shared_is_intact(grid_.shared)) {
      cluster_.error_ = "shared memory was written past its end";
    }
  });
  return any;
}

std::string Block::waiting() const {
  std::string out;
  const char* kStates[] = {"ready", "at a barrier", "in a warp", "for the cluster", "for a grid"};
  for (size_t t = 0; t < threads_.size(); ++t) {
    const Thread& thread = threads_[t];
    if (thread.state == ended) continue;
    if (!out.empty() && t > 0 && threads_[t - 1].state == thread.state) continue;
    out += " thread " + std::to_string(t) + " waits " + kStates[thread.state] + ", " +
           text(thread.at) + ";";
  }
  return out;
}

Cluster::Cluster(const Grid& grid, unsigned index)
    : grid_(grid), alive_(grid.threads.x * grid.cluster) {
  for (unsigned rank = 0; rank < grid.cluster; ++rank) {
    const unsigned block = index * grid.cluster + rank;
    workers_.push_back(lease_worker());
    const uint3 at{block % grid.blocks.x, block / grid.blocks.x, 0};
    blocks_.push_back(std::make_unique<Block>(grid, *this, at, rank, *workers_.back()));
  }
}

void Cluster::release() {
  if (arrived_ == 0 || arrived_ < alive_) return;
  arrived_ = 0;
  ++phase_;
}

void Cluster::run() {
  std::mt19937_64 random(grid_.schedule.seed);
  std::vector<int> ranks = grid_.schedule.first(blocks_.size());
  for (bool again = true; again && error_.empty();) {
    again = false;
    grid_.schedule.next(ranks, random);
    for (const int rank : ranks) {
      if (error_.empty() && !blocks_[rank]->done()) again |= blocks_[rank]->step();
    }
  }
  if (error_.empty() && alive_ > 0 && !grid_.waits) error_ = "threads wait for ever:";
  if (error_.empty()) return;
  for (const auto& block : blocks_) error_ += block->waiting();
  throw std::runtime_error("[emulator] " + error_);
}

}  // namespace qact::emulator
