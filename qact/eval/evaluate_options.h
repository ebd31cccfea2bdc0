// The options of an evaluation.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "qact/eval/inference.h"
#include "qact/results/row.h"

namespace qact::eval {

struct EvaluateOptions {
  std::vector<std::string> modes = {"tracked", "batch"};
  std::vector<std::string> adapt = {"none"};      // each in those of the modes that it works in
  std::vector<std::string> streams = {"single"};  // image_stream.h
  std::vector<std::string> classifiers;           // none: all that the model has
  std::vector<std::string> corruptions;           // as corrupt::select_corruptions() takes them
  std::vector<int> severities = {0, 1, 2, 3, 4, 5};
  InferenceOptions inference;  // its mode and method are replaced by each of those above

  std::string data;      // none: what the run was trained on
  std::string data_dir;  // none: the run's
  std::string official;  // folder of the published corrupted set; none: images are corrupted here
  std::string frost = "procedural";  // or official, or a folder of textures: see open_frost()
  uint64_t data_seed = 0;            // of corruptions, augmented copies and streams
  int64_t limit = 0;                 // use the first so many test images; 0: all

  std::string weights = "model";  // or best
  std::string device = "cpu";
  int threads = 0;  // 0: one per core. On the CPU, rows do not depend on it

  // t-SNE and histograms of one corruption at the severities above.
  bool diagnostics = false;
  std::string diagnostic_corruption;  // none: the first one evaluated
  int64_t diagnostic_samples = 1000;  // images of each severity

  // Written into every row: the command that repeats it, made from these options once all that was
  // left open is set; and the versions of the program.
  std::function<std::string(const EvaluateOptions&)> command;
  results::Row versions = results::Row::object();
};

// All that a row depends on, spelt out: the names of the options, without dashes, and their values,
// empty where one is left open.
std::vector<std::pair<std::string, std::string>> settings(const EvaluateOptions& options);

// Throws std::invalid_argument, naming the option.
void check(const EvaluateOptions& options);

}  // namespace qact::eval
