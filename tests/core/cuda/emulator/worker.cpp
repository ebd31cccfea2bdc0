#include "tests/core/cuda/emulator/worker.h"

#include <link.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#endif

// The kernels' dynamic shared memory has these names, one of which a kernel declares.
namespace qact::core::cuda {
alignas(32) thread_local unsigned char memory[emulator::kMostShared];
alignas(16) thread_local uint32_t bins[emulator::kMostShared / 4];
alignas(16) thread_local uint32_t tables[emulator::kMostShared / 4];
}  // namespace qact::core::cuda

namespace qact::emulator {
namespace {

constexpr uint32_t kPoison = 0x7ff5a5a5;  // a NaN as float, and twice as double
constexpr uint64_t kCanary = 0x7ff5a5a57ff5a5a5;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 * 1024;
#else
constexpr size_t kStack = 64 * 1024;
#endif
constexpr size_t kStride = kStack + 1088;  // no power of two, or all stacks would share cache sets

// All thread-local variables of the program or library that has the kernels, those of the calling
// thread.
std::span<char> thread_local_memory() {
  std::span<char> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          const auto first = static_cast<char*>(info->dlpi_tls_data);
          const auto own = reinterpret_cast<char*>(core::cuda::memory);
          if (own < first || own >= first + info->dlpi_phdr[i].p_memsz) continue;
          *static_cast<std::span<char>*>(to) = {first, info->dlpi_phdr[i].p_memsz};
          return 1;
        }
        return 0;
      },
      &out);
  return out;
}

std::span<char> past(void* array, size_t dynamic) {
  return {static_cast<char*>(array) + dynamic, kMostShared - dynamic};
}

template <class Visit>
void for_each_array(const Visit& visit) {
  for (void* array : {static_cast<void*>(core::cuda::memory), static_cast<void*>(core::cuda::bins),
                      static_cast<void*>(core::cuda::tables)})
    visit(array);
}

}  // namespace

Worker::Worker() {
  void* at = mmap(nullptr, kStride * kMostThreads, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  stacks_ = static_cast<char*>(at);
  thread_ = std::thread([this] {
    thread_pointer_ = static_cast<char*>(__builtin_thread_pointer());
    for (;;) {
      go_.acquire();
      if (!call_) return;
      (*call_)();
      done_.release();
    }
  });
}

Worker::~Worker() {
  call_ = nullptr;
  go_.release();
  thread_.join();
  munmap(stacks_, kStride * kMostThreads);
}

void Worker::run(const std::function<void()>& call) {
  call_ = &call;
  go_.release();
  done_.acquire();
}

void* Worker::stack(int fiber) const {
  char* bottom = stacks_ + kStride * fiber;
  std::memcpy(bottom, &kCanary, sizeof(kCanary));
  return bottom;
}
bool Worker::stack_is_intact(int fiber) const {
  return std::memcmp(stacks_ + kStride * fiber, &kCanary, sizeof(kCanary)) == 0;
}
size_t Worker::stack_bytes() { return kStack; }

void Worker::poison_shared(size_t dynamic) {
  const std::span<char> all = thread_local_memory();
  ASAN_UNPOISON_MEMORY_REGION(all.data(), all.size());
  for (size_t i = 0; i + 4 <= all.size(); i += 4) std::memcpy(&all[i], &kPoison, 4);
  for_each_array([&](void* array) {
    const auto rest = past(array, dynamic);
    ASAN_POISON_MEMORY_REGION(rest.data(), rest.size());
  });
}

bool Worker::shared_is_intact(size_t dynamic) const {
  bool intact = true;
  for_each_array([&](void* array) {
    const auto rest = past(array, dynamic);
    ASAN_UNPOISON_MEMORY_REGION(rest.data(), rest.size());
    constexpr size_t kLooked = 4096;
    for (size_t i = (4 - dynamic % 4) % 4; i + 4 <= rest.size() && i < kLooked; i += 4)
      intact &= std::memcmp(&rest[i], &kPoison, 4) == 0;
  });
  return intact;
}

void* Worker::translate(const void* own, const Worker& from, const Worker& to) {
  return to.thread_pointer_ + (static_cast<const char*>(own) - from.thread_pointer_);
}

LeasedWorker lease_worker() {
  static std::vector<std::unique_ptr<Worker>> idle;
  if (idle.empty()) idle.push_back(std::make_unique<Worker>());
  Worker* worker = idle.back().release();
  idle.pop_back();
  return {worker, [](Worker* back) { idle.emplace_back(back); }};
}

}  // namespace qact::emulator
