// Ctrl-C and SIGTERM: an exit status of 128 + the signal, as shells have it, and a word about what
// to do next.
#pragma once

namespace qact::cli {

// From now on either signal ends the program at once, with a message. For all that writes no
// file before it is done; what does has an InterruptGuard.
void end_on_signals();

// Ctrl-C as a question that a long run asks itself, so that it can end tidily. While one lives,
// the first SIGINT or SIGTERM only sets a flag; a second one ends the program at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

// The exit status of a run that failed: 1, or that of the signal which a guard was told of.
int failure_status();

}  // namespace qact::cli
