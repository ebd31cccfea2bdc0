// A run is a folder:
//
//   config.json         the resolved configuration
//   model.safetensors   the network as last saved
//   best.safetensors    the network after the epoch of the highest validation accuracy, the
//                       first of equals; not there where nothing is held out
//   state.safetensors   where the run is (checkpoint.h)
//   train.jsonl         a row for each epoch
#pragma once

#include <filesystem>

#include "qact/run/train_config.h"

namespace qact::run {

struct RunFolder {
  std::filesystem::path folder;

  std::filesystem::path config() const { return folder / "config.json"; }
  std::filesystem::path model() const { return folder / "model.safetensors"; }
  std::filesystem::path best() const { return folder / "best.safetensors"; }
  std::filesystem::path state() const { return folder / "state.safetensors"; }
  std::filesystem::path rows() const { return folder / "train.jsonl"; }

  bool exists() const { return std::filesystem::exists(config()); }

  // Throws where the folder holds a run and `resume` is off, or another run.
  void check_free(const TrainConfig& config, bool resume) const;
  // Makes the folder, removes what a killed writer left, and writes the configuration.
  void prepare(const TrainConfig& config) const;
};

}  // namespace qact::run
