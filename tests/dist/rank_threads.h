// Ranks as threads of one process, connected by Gloo.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "qact/dist/gloo.h"
#include "qact/dist/world.h"

namespace qact::dist {

inline World rank_of(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  if (size == 1) return World();
  using Group = c10d::ProcessGroup;
  const auto group = c10::make_intrusive<Group>(store, rank, size);
  group->setDefaultBackend(Group::BackendType::GLOO);
  group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO,
                    make_gloo(store, rank, size, std::chrono::seconds(60)));
  return World(group);
}

// Calls run(world) as each of `size` ranks; rethrows the first rank's exception, or another's.
inline void run_ranks(int size, const std::function<void(const World&)>& run) {
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(size);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          run(rank_of(store, rank, size));
        } catch (...) {
          failures[rank] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace qact::dist
