#include "cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace qact::cli {

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::clear() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double share, const std::string& note) {
  if (!terminal_) return;
  constexpr int kWidth = 30;
  const int filled = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  // Too early an estimate only jumps about.
  const std::string left =
      share > 0.01 ? ", " + duration(spent.count() * (1 - share) / share) + " left" : "";
  std::fprintf(stderr, "\r%s [%s] %3.0f%%%s%s\033[K", what_.c_str(), bar.c_str(), 100 * share,
               note.c_str(), left.c_str());
  std::fflush(stderr);
}

std::string duration(double seconds) {
  const long s = std::lround(std::max(0.0, seconds));
  if (s < 60) return std::to_string(s) + " s";
  if (s < 3600) return std::to_string(s / 60) + " min " + std::to_string(s % 60) + " s";
  return std::to_string(s / 3600) + " h " + std::to_string(s / 60 % 60) + " min";
}

}  // namespace qact::cli
