// What benchmarks share: rows of results, and timing two things side by side.
//
// A benchmark is one file, with one function that is declared below and listed in the
// table of main.cpp. It validates what it times first, and throws if that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qact::bench {

struct Settings {
  int repeats = 30;
  int threads = 2;
};

// Our time and that of a peer doing the like; no peer: leave its name empty.
struct Row {
  std::string what;
  std::vector<int64_t> shape;
  std::string dtype, layout, pass;
  double qact_ms = 0;
  std::string peer;
  double peer_ms = 0;
  std::string note;  // for the terminal only
  std::string device = "cpu";
};

// Prints rows as they come, and keeps them for the file.
class Report {
 public:
  explicit Report(const Settings& settings);
  void add(const Row& row);
  void say(const std::string& line);
  void write(const std::string& path) const;

 private:
  int threads_;
  nlohmann::json rows_ = nlohmann::json::array();
};

// Calls each step in turn, `repeats` times after three rounds to warm up, so that noise
// meets all of them alike. A step returns the milliseconds of its parts; medians come back
// as [step][part].
using Step = std::function<std::vector<double>()>;
std::vector<std::vector<double>> interleave(const std::vector<Step>& steps, int repeats);

double milliseconds_of(const std::function<void()>& work);

void layer(const Settings& settings, Report& report);
void scope(const Settings& settings, Report& report);
void inference(const Settings& settings, Report& report);
void layer_cuda(const Settings& settings, Report& report);
void curve(const Settings& settings, Report& report);
void train_step(const Settings& settings, Report& report);
void train_step_extras(const Settings& settings, Report& report);
void loader(const Settings& settings, Report& report);
void corruption(const Settings& settings, Report& report);
void metrics_of_outputs(const Settings& settings, Report& report);

}  // namespace qact::bench
