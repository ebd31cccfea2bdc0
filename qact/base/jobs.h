// Independent jobs on a few threads, with progress told to the caller.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace qact::base {

// Told the share of the work done, about ten times a second and at the end, always on the
// calling thread. Returning false stops the run.
using Progress = std::function<bool(double share)>;

struct Interrupted : std::runtime_error {
  Interrupted()
      : std::runtime_error("interrupted: nothing was written, and the same command starts anew") {}
};

// What a job reports to.
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

// Calls job(i, work) for i in [0, jobs) on `threads` threads (0: one per core). Jobs advance by
// `units` in all. The first exception stops the others and is thrown again here. Jobs that call
// torch run inside an ops::SingleThreadGuard.
void run_jobs(int64_t jobs, int threads, int64_t units, const Progress& progress,
              const std::function<void(int64_t, Work&)>& job);

}  // namespace qact::base
