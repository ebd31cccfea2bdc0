// Torch's operators on the thread that calls them, for jobs that run side by side.
#pragma once

#include <ATen/Parallel.h>

namespace qact::ops {

// While one lives, threads that are started later compute on themselves alone, so that results do
// not depend on how many there are. Torch's number of threads is one setting for all of them.
class SingleThreadGuard {
 public:
  SingleThreadGuard() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~SingleThreadGuard() { at::set_num_threads(before_); }
  SingleThreadGuard(const SingleThreadGuard&) = delete;
  SingleThreadGuard& operator=(const SingleThreadGuard&) = delete;

 private:
  const int before_;
};

}  // namespace qact::ops
