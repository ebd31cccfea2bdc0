#include "qact/base/jobs.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace qact::base {

void run_jobs(int64_t jobs, int threads, int64_t units, const Progress& progress,
              const std::function<void(int64_t, Work&)>& job) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  threads = static_cast<int>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(jobs, 1)));
  Work work;
  std::atomic<int64_t> next = 0;
  std::mutex lock;
  std::condition_variable ended;
  int running = threads;
  std::exception_ptr failure;
  const auto worker = [&] {
    try {
      for (int64_t i; (i = next++) < jobs;) job(i, work);
    } catch (...) {
      work.stopped = true;
      const std::scoped_lock held(lock);
      if (!failure) failure = std::current_exception();
    }
    const std::scoped_lock held(lock);
    running -= 1;
    ended.notify_one();
  };
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) workers.emplace_back(worker);
  {
    std::unique_lock held(lock);
    while (!ended.wait_for(held, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      const double fraction = static_cast<double>(work.done) / static_cast<double>(units);
      try {
        if (progress && !failure && !progress(std::min(fraction, 1.0))) work.stopped = true;
      } catch (...) {
        work.stopped = true;
        failure = std::current_exception();
      }
    }
  }
  workers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
  if (progress) progress(1.0);
}

}  // namespace qact::base
