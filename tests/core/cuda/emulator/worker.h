// A system thread lends a block its thread-local memory, which is what __shared__ variables are:
// so the blocks of a cluster have one instance each, at the same offset from the thread's pointer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>

namespace qact::emulator {

inline constexpr size_t kMostShared = 227 * 1024;  // dynamic, of a block
inline constexpr int kMostThreads = 1024;

class Worker {
 public:
  Worker();
  ~Worker();

  // Calls it on the thread, to its end. One caller at a time: so nothing ever runs side by side.
  void run(const std::function<void()>& call);

  void* stack(int fiber) const;
  bool stack_is_intact(int fiber) const;
  static size_t stack_bytes();

  // By the thread itself. Fills all shared memory with a pattern that is a NaN in every type, and
  // says whether what lies past the dynamic part is still so.
  void poison_shared(size_t dynamic);
  bool shared_is_intact(size_t dynamic) const;

  // The same variable of another thread.
  static void* translate(const void* own, const Worker& from, const Worker& to);

 private:
  char* stacks_;
  char* thread_pointer_ = nullptr;
  const std::function<void()>* call_ = nullptr;
  std::binary_semaphore go_{0}, done_{0};
  std::thread thread_;
};

// From the pool of all workers, which are kept: making them takes longer than running a block.
using LeasedWorker = std::unique_ptr<Worker, void (*)(Worker*)>;
LeasedWorker lease_worker();

}  // namespace qact::emulator
