// A run is a folder:
//
//   config.json         the resolved configuration
//   model.safetensors   the network as last saved
//   best.safetensors    the network after the epoch of the highest validation accuracy, the
//                       first of equals; not there where nothing is held out
//   state.safetensors   where the run is (checkpoint.h)
//   train.jsonl         a row for each epoch
//   .lock               held by the process that trains
//   results.jsonl       rows of evaluations (evaluate.h)
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

  // Throws where there is no run to go on with.
  void expect_resumable() const;
  // Throws where the folder holds a run, or weights, and `resume` is off, or another run.
  void check_free(const TrainConfig& config, bool resume) const;
};

// Throws: `folder` is none of a run, because of `found`.
[[noreturn]] void refuse_run(const std::filesystem::path& folder, const std::string& found);
// This file of a run's folder; throws where it is not there.
std::filesystem::path expect_in_run(const std::filesystem::path& file);

// Held while a process works in a run's folder, and gone with it, however it ends.
class RunLock {
 public:
  // Makes the folder. Throws where another process, or another run of this one, is in it.
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_;
};

}  // namespace qact::train
