// One line on the terminal: a bar, the share done, and the time left. Silent in a pipe.
#pragma once

#include <chrono>
#include <string>

namespace qact::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar() { clear(); }

  // `note` follows the share done.
  void show(double share, const std::string& note = "");
  // Makes room for a line of text.
  void clear();

 private:
  std::string what_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// 7 s, 1 min 20 s, 2 h 5 min.
std::string duration(double seconds);

}  // namespace qact::cli
