#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <exception>
#include <initializer_list>

namespace qact::cli {
namespace {

// A signal handler reaches nothing but globals of this type.
volatile std::sig_atomic_t signal_ = 0;
volatile std::sig_atomic_t terminal_ = 0;

volatile std::sig_atomic_t rank_ = 0;   // one of several
volatile std::sig_atomic_t quiet_ = 0;  // and not the one that speaks

constexpr unsigned kSecondsToEnd = 5;

void on_signal(int number) {
  signal_ = number;
  if (rank_ != 0) alarm(kSecondsToEnd);
}

void end_now(int number) {
  // To all ranks, torchrun sends SIGTERM after the end of one, which has said why.
  if (rank_ != 0 && (quiet_ != 0 || number == SIGTERM)) _exit(128 + number);
  constexpr char kText[] = "\r\033[Kqact: interrupted\n";
  constexpr size_t kClear = 4;  // characters that clear a progress bar
  const size_t from = terminal_ != 0 ? 0 : kClear;
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, kText + from, sizeof kText - 1 - from);
  _exit(128 + number);
}

void end_late(int) { end_now(signal_); }

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

void end_soon_after_signals(bool loud) {
  rank_ = 1;
  quiet_ = loud ? 0 : 1;
  struct sigaction action = {};
  action.sa_handler = end_late;
  sigaction(SIGALRM, &action, nullptr);
}

InterruptGuard::InterruptGuard() {
  signal_ = 0;
  set_handler(on_signal, static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() {
  // torchrun sends SIGTERM as soon as it sees that a rank has ended, while another is about to say
  // so: what a rank throws is explained first.
  if (rank_ != 0 && std::uncaught_exceptions() > 0) return;
  set_handler(end_now, 0);
}

bool InterruptGuard::interrupted() const { return signal_ != 0; }

void InterruptGuard::take_time() const { alarm(0); }

int failure_status() { return signal_ == 0 ? 1 : 128 + signal_; }

}  // namespace qact::cli
