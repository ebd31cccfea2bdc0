#include "cli/interrupt.h"

#include <csignal>

namespace qact::cli {
namespace {

// A signal handler reaches nothing but a global of this type.
volatile std::sig_atomic_t interrupted_ = 0;

void on_signal(int) { interrupted_ = 1; }

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted_ = 0;
  set_handler(on_signal, static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() { set_handler(SIG_DFL, 0); }

bool InterruptGuard::interrupted() const { return interrupted_ != 0; }

}  // namespace qact::cli
