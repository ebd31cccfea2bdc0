// A stack of its own for every CUDA thread, and the way from one stack to another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace qact::emulator {

// A place to go on from. resume() and suspend() are the only ways between a fiber and its
// scheduler.
class Fiber {
 public:
  // body() begins on that stack with the first resume(), and never returns.
  void prepare(void* stack, size_t bytes, void (*body)());
  void resume();
  void suspend(bool for_ever = false);
  // The first call of body().
  void entered();

 private:
  struct Side {
#if defined(__x86_64__)
    void* stack_pointer = nullptr;
#else
    ucontext_t context;
#endif
    const void* bottom = nullptr;  // of the stack, for the address sanitizer, as what follows
    size_t bytes = 0;
    void* fake_stack = nullptr;
  };
  static void go(Side& from, Side& to, bool for_ever);

  Side own_, scheduler_;
};

}  // namespace qact::emulator
