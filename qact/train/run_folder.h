// A run is a folder:
//
//   config.json         the resolved configuration
//   model.safetensors   the network as last saved
//   best.safetensors    the network after the epoch of the highest validation accuracy, the first
//                       of equal ones; missing where there are no validation images
//   state.safetensors   how far the run is (training_state.h)
//   train.jsonl         a row for each epoch
//   .lock               locked by the process that trains
//   results.jsonl       rows of evaluations
#pragma once

#include <filesystem>
#include <string>

#include "qact/train/config.h"

namespace qact::train {

struct RunFolder {
  std::filesystem::path folder;

  std::filesystem::path config() const { return folder / "config.json"; }
  std::filesystem::path model() const { return folder / "model.safetensors"; }
  std::filesystem::path best() const { return folder / "best.safetensors"; }
  std::filesystem::path state() const { return folder / "state.safetensors"; }
  std::filesystem::path rows() const { return folder / "train.jsonl"; }
  std::filesystem::path results() const { return folder / "results.jsonl"; }

  bool exists() const { return std::filesystem::exists(config()); }

  // Throws where there is no run to resume.
  void expect_resumable() const;
  // Throws where a new run would overwrite a run or weights; with `resume`, where the run here has
  // other options.
  void check_free(const TrainConfig& config, bool resume) const;
};

// Throws: `folder` is not the folder of a run; `found` says why.
[[noreturn]] void refuse_run(const std::filesystem::path& folder, const std::string& found);
// Returns `file`, a file of a run's folder; throws where it is missing.
std::filesystem::path expect_in_run(const std::filesystem::path& file);

// Locks a run's folder while it lives. The lock ends with the process, however that ends.
class RunLock {
 public:
  // Makes the folder. Throws where it is locked already, by another process or by this one.
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_;
};

}  // namespace qact::train
