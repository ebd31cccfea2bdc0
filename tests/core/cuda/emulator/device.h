// The device: what it is, and the kernels that were launched on it.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/cuda/emulator/grid.h"

namespace qact::emulator {

struct Card {
  int id;                       // what is cached per device is not mixed up
  size_t shared = kMostShared;  // of a block, at most
  int ptx = 90;                 // the architecture that kernels are compiled for
};
inline constexpr Card kH200{0};
inline constexpr Card kWorkstation{1, 99 * 1024, 80};  // as sm_86 and sm_89, without clusters

struct Launch {
  std::string kernel;  // with its template arguments
  unsigned cluster;    // blocks
};

// Kernels run when the next one is launched, or by synchronize(). One that may start early, by
// programmatic dependent launch, has a cluster that does: it runs up to its wait before the kernel
// in front of it begins. Several threads may launch, one at a time.
class Device {
 public:
  Card card = kH200;
  Schedule schedule;
  std::vector<Launch> launches;

  // Empty, or why it cannot be.
  std::string launch(Grid grid, const void* kernel, bool early);
  void allow_shared(const void* kernel, size_t bytes);
  void synchronize();

 private:
  struct Pending {
    Grid grid;
    std::optional<unsigned> index;  // of the cluster that came early
    std::unique_ptr<Cluster> early;
  };
  std::recursive_mutex mutex_;
  std::unique_ptr<Pending> pending_;
  std::vector<std::pair<const void*, size_t>> allowed_;
};

Device& device();

}  // namespace qact::emulator
