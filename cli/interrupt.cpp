#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace qact::cli {
namespace {

// A signal handler reaches nothing but globals of this type.
volatile std::sig_atomic_t signal_ = 0;
volatile std::sig_atomic_t terminal_ = 0;

void on_signal(int number) { signal_ = number; }

void end_now(int number) {
  constexpr char kText[] = "\r\033[Kqact: interrupted\n";
  constexpr size_t kClear = 4;  // characters that clear a progress bar
  const size_t from = terminal_ != 0 ? 0 : kClear;
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, kText + from, sizeof kText - 1 - from);
  _exit(128 + number);
}

// A signal that was ignored from the start, as in jobs that a script runs in the background, stays
// ignored.
void set_handler(void (*handler)(int), int flags) {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

void end_on_signals() {
  terminal_ = isatty(STDERR_FILENO);
  set_handler(end_now, 0);
}

InterruptGuard::InterruptGuard() {
  signal_ = 0;
  set_handler(on_signal, static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() { set_handler(end_now, 0); }

bool InterruptGuard::interrupted() const { return signal_ != 0; }

int failure_status() { return signal_ == 0 ? 1 : 128 + signal_; }

}  // namespace qact::cli
