// A parallel loop that needs no torch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace qact::base {

// Calls body(i) for each i in [0, count) on up to `threads` threads (0: one per core). A free
// thread takes the next `grain` indices. The first exception stops the loop and is rethrown here.
inline void parallel_for(int64_t count, int threads, int64_t grain,
                         const std::function<void(int64_t)>& body) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 1 || count <= grain) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    try {
      for (int64_t i; (i = next.fetch_add(grain)) < count;) {
        for (int64_t end = std::min(i + grain, count); i < end; ++i) body(i);
      }
    } catch (...) {
      next = count;
      const std::scoped_lock lock(failure_lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  others.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace qact::base
