// Ctrl-C as a question that a long run asks itself, so that it can end tidily.
#pragma once

namespace qact::cli {

// While one lives, the first SIGINT or SIGTERM only sets a flag; a second one ends the
// program at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

}  // namespace qact::cli
