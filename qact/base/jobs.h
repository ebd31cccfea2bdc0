// Independent jobs on a pool of threads, with progress reports to the caller.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "qact/base/progress.h"

namespace qact::base {

struct Interrupted : std::runtime_error {
  Interrupted()
      : std::runtime_error("interrupted: nothing was written, and the same command starts anew") {}
};

// Counts the work done by all jobs of a run.
class Work {
 public:
  // Throws Interrupted once the run has been stopped.
  void advance(int64_t units) {
    if (stopped) throw Interrupted();
    done += units;
  }

  std::atomic<int64_t> done = 0;
  std::atomic<bool> stopped = false;
};

// Calls job(i, work) for i in [0, jobs) on `threads` threads (0: one per core). The jobs together
// advance `work` by `units`. `progress` is called about ten times a second and at the end. The
// first exception, also one of `progress`, stops the other jobs and is rethrown here. Jobs that
// call torch run inside an ops::SingleThreadGuard.
void run_jobs(int64_t jobs, int threads, int64_t units, const Progress& progress,
              const std::function<void(int64_t, Work&)>& job);

}  // namespace qact::base
