#include "bench/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace qact::bench {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double milliseconds_of(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<std::vector<double>> interleave(const std::vector<Step>& steps, int repeats) {
  constexpr int kWarmUp = 3;
  std::vector<std::vector<std::vector<double>>> times(steps.size());  // [step][part][repeat]
  for (int round = -kWarmUp; round < repeats; ++round) {
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::vector<double> parts = steps[s]();
      if (round < 0) continue;
      times[s].resize(parts.size());
      for (size_t p = 0; p < parts.size(); ++p) times[s][p].push_back(parts[p]);
    }
  }
  std::vector<std::vector<double>> medians(steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const auto& part : times[s]) medians[s].push_back(median(part));
  }
  return medians;
}

Report::Report(const Settings& settings) : threads_(settings.threads) {
  std::printf("%-8s %-20s %-9s %-14s %-9s %10s %10s %7s\n", "what", "shape", "dtype", "layout",
              "pass", "qact ms", "peer ms", "ratio");
}

void Report::add(const Row& row) {
  const nlohmann::json shape = row.shape;
  const double ratio = row.qact_ms / row.peer_ms;
  std::printf("%-8s %-20s %-9s %-14s %-9s %10.3f ", row.what.c_str(), shape.dump().c_str(),
              row.dtype.c_str(), row.layout.c_str(), row.pass.c_str(), row.qact_ms);
  if (row.peer.empty()) {
    std::printf("%10s %7s  %s\n", "-", "-", row.note.c_str());
  } else {
    std::printf("%10.3f %7.2f  %s\n", row.peer_ms, ratio, row.note.c_str());
  }
  std::fflush(stdout);
  nlohmann::json entry = {{"what", row.what},    {"device", row.device},   {"shape", shape},
                          {"dtype", row.dtype},  {"layout", row.layout},   {"pass", row.pass},
                          {"threads", threads_}, {"qact_ms", row.qact_ms}, {"peer", nullptr},
                          {"peer_ms", nullptr},  {"ratio", nullptr}};
  if (!row.peer.empty()) {
    entry["peer"] = row.peer, entry["peer_ms"] = row.peer_ms, entry["ratio"] = ratio;
  }
  rows_.push_back(entry);
}

void Report::say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Report::write(const std::string& path) const {
  const std::string unfinished = path + ".part";
  std::ofstream file(unfinished);
  file << rows_.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error("[bench] expected to write " + unfinished + ", could not");
  std::filesystem::rename(unfinished, path);
}

}  // namespace qact::bench
