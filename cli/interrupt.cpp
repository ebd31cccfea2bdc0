#include "cli/interrupt.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <thread>

namespace qact::cli {
namespace {

// A signal handler reaches nothing but globals of this type.
volatile std::sig_atomic_t signal_ = 0;
volatile std::sig_atomic_t terminal_ = 0;

volatile std::sig_atomic_t rank_ = 0;   // one of several
volatile std::sig_atomic_t quiet_ = 0;  // and not the one that speaks

// Of a rank, once a guard was told of a signal.
enum class Deadline { runs, cancelled, is_up };
constexpr std::chrono::seconds kTimeToEnd(5);
sem_t begun_;
std::atomic<Deadline> deadline_ = Deadline::runs;
std::mutex words_lock_;
std::function<std::string()> words_;

void on_signal(int number) {
  signal_ = number;
  if (rank_ != 0) sem_post(&begun_);
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

void end_late() {
  while (sem_wait(&begun_) != 0) {
  }
  std::this_thread::sleep_for(kTimeToEnd);
  Deadline expected = Deadline::runs;
  if (!deadline_.compare_exchange_strong(expected, Deadline::is_up)) return;
  std::string text;
  {
    const std::scoped_lock lock(words_lock_);
    if (words_) text = words_();
  }
  if (text.empty()) end_now(signal_);
  std::fprintf(stderr, "qact: %s\n", text.c_str());
  _exit(128 + signal_);
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

void end_soon_after_signals(bool loud) {
  quiet_ = loud ? 0 : 1;
  sem_init(&begun_, 0, 0);
  rank_ = 1;
  std::thread(end_late).detach();
}

void set_last_words(std::function<std::string()> words) {
  const std::scoped_lock lock(words_lock_);
  words_ = std::move(words);
}

void take_time() {
  Deadline expected = Deadline::runs;
  deadline_.compare_exchange_strong(expected, Deadline::cancelled);
  while (deadline_ == Deadline::is_up) pause();
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

int failure_status() { return signal_ == 0 ? 1 : 128 + signal_; }

}  // namespace qact::cli
