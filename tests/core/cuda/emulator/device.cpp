#include "tests/core/cuda/emulator/device.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace qact::emulator {
namespace {

std::string name_of(const void* kernel) {
  Dl_info info{};
  if (!dladdr(kernel, &info) || !info.dli_sname) return "";
  char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
  const std::string out = readable ? readable : info.dli_sname;
  std::free(readable);
  return out.substr(0, out.find('('));
}

}  // namespace

Device& device() {
  static Device only;
  return only;
}

void Device::allow_shared(const void* kernel, size_t bytes) {
  const std::lock_guard lock(mutex_);
  allowed_.emplace_back(kernel, bytes);
}

std::string Device::launch(Grid grid, const void* kernel, bool early) {
  const std::lock_guard lock(mutex_);
  size_t most = 48 * 1024;
  for (const auto& [of, bytes] : allowed_) {
    if (of == kernel) most = std::max(most, bytes);
  }
  const unsigned count = grid.blocks.x * grid.blocks.y;
  if (count == 0 || grid.blocks.y > 65535) return "the grid's size";
  if (grid.threads.x == 0 || grid.threads.x > kMostThreads) return "the block's size";
  if (grid.shared > std::min(most, card.shared)) return "the dynamic shared memory";
  if (grid.cluster == 0 || count % grid.cluster != 0 || grid.cluster > 8)
    return "the cluster's size";
  if (card.ptx < 90 && (early || grid.cluster > 1)) return "an attribute before sm_90";
  launches.push_back({name_of(kernel), grid.cluster});
  grid.schedule = schedule;
  auto next = std::make_unique<Pending>();
  next->grid = std::move(grid);
  if (early && pending_) {
    next->grid.waits = true;
    next->index = next->grid.schedule.first(count / next->grid.cluster).front();
    next->early = std::make_unique<Cluster>(next->grid, *next->index);
    next->early->run();
  }
  synchronize();
  next->grid.waits = false;
  pending_ = std::move(next);
  return "";
}

void Device::synchronize() {
  const std::lock_guard lock(mutex_);
  const auto now = std::move(pending_);
  if (!now) return;
  std::vector<int> clusters =
      now->grid.schedule.first(now->grid.blocks.x * now->grid.blocks.y / now->grid.cluster);
  std::mt19937_64 random(now->grid.schedule.seed);
  now->grid.schedule.next(clusters, random);
  if (now->early) {
    now->early->run();
    now->early.reset();
  }
  for (const int index : clusters) {
    if (static_cast<unsigned>(index) != now->index) Cluster(now->grid, index).run();
  }
}

}  // namespace qact::emulator
