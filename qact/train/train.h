// Training, as a run in a folder that can be stopped at any moment and gone on with.
#pragma once

#include <functional>
#include <optional>

#include "qact/results/row.h"
#include "qact/train/config.h"
#include "qact/train/run_folder.h"

namespace qact::train {

struct TrainStatus {
  int64_t epoch = 0;  // under way, from 1
  double share = 0;   // of what was left to do when the run began or went on
  double images_per_second = 0;
};

// All on the calling thread.
struct TrainEvents {
  // After each step, and each batch of validation. False: save and stop.
  std::function<bool(const TrainStatus&)> step;
  // After each epoch, with its row of train.jsonl.
  std::function<void(const results::Row&)> epoch;
  // What a user should know of a run that is resumed.
  std::function<void(const std::string&)> remark;
};

struct TrainResult {
  bool interrupted = false;    // step() said so; all is saved
  bool stopped_early = false;  // by --early-stopping
  int64_t epochs = 0;          // done, in all
  int64_t steps = 0;
  std::optional<double> best;  // validation accuracy
  int64_t best_epoch = 0;
};

// Begins a run in `folder`, which holds none, or goes on with the one that it holds (`resume`); on
// the CPU that ends with the weights of a run that was never stopped, bit for bit. Throws where the
// run there is of other options or other data. Throws std::runtime_error when
// the loss turns NaN or infinite, naming the step and the layer.
//
// The accuracy of cross-entropy is that of the logits; of the other losses, which train no
// classifier, the share of held-out images whose nearest other one, by embedding, is of their
// class.
TrainResult train(TrainConfig config, const RunFolder& folder, bool resume,
                  const TrainEvents& events = {});

}  // namespace qact::train
