// Training as a run in a folder, which can be stopped at any moment and resumed.
#pragma once

#include <functional>
#include <optional>

#include "qact/dist/world.h"
#include "qact/results/row.h"
#include "qact/train/config.h"
#include "qact/train/run_folder.h"

namespace qact::train {

struct TrainStatus {
  int64_t epoch = 0;  // the current one, from 1
  double share = 0;   // done, of what was left when the run began or was resumed
  double images_per_second = 0;
};

// Callbacks, all on the calling thread.
struct TrainEvents {
  // After each step and each batch of the validation. False: save and stop.
  std::function<bool(const TrainStatus&)> step;
  // Once all ranks know that one was told to stop, before they save.
  std::function<void()> stopping;
  // After each epoch, with its row of train.jsonl.
  std::function<void(const results::Row&)> epoch;
  // A warning for the user about a run that is resumed.
  std::function<void(const std::string&)> remark;
};

struct TrainResult {
  bool interrupted = false;    // step() returned false; all is saved
  bool stopped_early = false;  // by --early-stopping
  int64_t epochs = 0;          // done in all
  int64_t steps = 0;
  std::optional<double> best;  // validation accuracy
  int64_t best_epoch = 0;
};

// Begins a run in `folder`, which must have none, or resumes the one that it has. On the CPU, a run
// that was resumed ends with the weights of one that never stopped, bit for bit. Throws where the
// run to resume has other options or other data. Throws std::runtime_error when the loss becomes
// NaN or infinite, and names the step and the layer.
//
// All ranks of a world call it alike, and each computes its share of every batch. The first one
// writes to the folder, which all of them see. A run may be resumed with another number of ranks.
TrainResult train(TrainConfig config, const RunFolder& folder, bool resume,
                  const TrainEvents& events = {}, const dist::World& world = {});

}  // namespace qact::train
