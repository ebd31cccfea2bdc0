// Ctrl-C and SIGTERM: an exit status of 128 + the signal, as shells have it, and a word about what
// to do next.
#pragma once

#include <functional>
#include <string>

namespace qact::cli {

// From now on either signal ends the program at once, with a message. For all that writes no
// file before it is done; what does has an InterruptGuard.
void end_on_signals();

// For one rank of several, which may wait in vain for another one that the signal ended. While an
// InterruptGuard lives, the program ends 5 seconds after the signal at the latest: files are
// written whole or not at all. One rank is loud: it alone says that Ctrl-C ended the program.
void end_soon_after_signals(bool loud);
// What to print when that time is up; empty: nothing. Called on a thread of its own.
void set_last_words(std::function<std::string()> words);
// Before a rank saves, or says why it ends: the time no longer ends it. Never returns where the
// time is up already.
void take_time();

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
