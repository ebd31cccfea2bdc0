#include "tests/core/cuda/emulator/fiber.h"

#if defined(__x86_64__)
// What a call must preserve is pushed, the stacks are exchanged, and the other's is popped.
// swapcontext() would do, but for a system call that takes fifty times as long.
asm(R"(
.text
.type qact_emulator_switch, @function
qact_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size qact_emulator_switch, .-qact_emulator_switch
)");
extern "C" void qact_emulator_switch(void** from, void* to);
#endif

namespace qact::emulator {

void Fiber::prepare(void* stack, size_t bytes, void (*body)()) {
  own_.bottom = stack;
  own_.bytes = bytes;
  own_.fake_stack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(stack, bytes);  // frames of the fiber before, which never returned
#endif
#if defined(__x86_64__)
  constexpr int kPushed = 6;
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) / 16 * 16;
  void** at = reinterpret_cast<void**>(top) - 2;  // as after a call: 8 past a multiple of 16
  *at = reinterpret_cast<void*>(body);
  own_.stack_pointer = at - kPushed;
#else
  getcontext(&own_.context);
  own_.context.uc_stack.ss_sp = stack;
  own_.context.uc_stack.ss_size = bytes;
  makecontext(&own_.context, body, 0);
#endif
}

void Fiber::go(Side& from, Side& to, [[maybe_unused]] bool for_ever) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(__x86_64__)
  qact_emulator_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, &to.bottom, &to.bytes);
#endif
}

void Fiber::resume() { go(scheduler_, own_, false); }
void Fiber::suspend(bool for_ever) { go(own_, scheduler_, for_ever); }

void Fiber::entered() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_.bottom, &scheduler_.bytes);
#endif
}

}  // namespace qact::emulator
