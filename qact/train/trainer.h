// The training loop: steps, epochs, validation, and when a run is saved.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <memory>
#include <optional>

#include "qact/dist/gradient_buckets.h"
#include "qact/dist/world.h"
#include "qact/losses/loss.h"
#include "qact/models/network.h"
#include "qact/train/early_stopping.h"
#include "qact/train/graphed_network.h"
#include "qact/train/model_file.h"
#include "qact/train/optimiser.h"
#include "qact/train/progress.h"
#include "qact/train/scheduler.h"
#include "qact/train/train.h"
#include "qact/train/training_data.h"

namespace qact::train {

class Trainer {
 public:
  // All ranks of `world` train one network. The first one alone writes to the folder.
  Trainer(const TrainConfig& config, const RunFolder& folder, const TrainEvents& events,
          const dist::World& world);

  // Saves the first state of a new run, so that it can be resumed from now on.
  void begin();
  // Loads the state in the folder. Throws where it has other options or data.
  void restore();
  TrainResult run();

 private:
  // Each returns false once TrainEvents::step has returned false, on any rank.
  bool train_epoch();
  bool end_epoch();
  bool finish_models();
  bool report();  // on this rank

  double take_step();  // the loss, to be summed over all ranks
  torch::Tensor loss_of(const Batch& batch, const models::NetworkOutput& output, int64_t number);
  bool uses_cuda_graph() const;
  models::NetworkOutput forward(const torch::Tensor& images);
  void check_same_on_all_ranks() const;
  [[noreturn]] void fail_not_finite(const Batch& batch, double loss);
  nlohmann::ordered_json saved_progress() const;
  void check_saved(const nlohmann::ordered_json& progress) const;
  void restore_rows();
  void save();
  ModelCard card() const;
  int64_t steps_done() const { return progress_.epoch * steps_ + progress_.step; }
  double images_per_second() const;

  const TrainConfig config_;
  const RunFolder folder_;
  const TrainEvents& events_;
  const dist::World& world_;
  const losses::Loss loss_;
  TrainingData data_;
  const int64_t steps_;  // in an epoch
  const std::shared_ptr<models::Network> network_;
  Optimiser optimiser_;
  std::optional<dist::GradientBuckets> gradients_;  // of several ranks
  LrScheduler scheduler_;
  EarlyStopping early_stopping_;
  std::optional<GraphedNetwork> graphed_;
  TrainProgress progress_;
  results::Rows rows_;

  int64_t first_step_ = 0;  // of this process: 0, or where the run was resumed
  int64_t images_ = 0;      // of the current epoch, seen by this process
  std::chrono::steady_clock::time_point epoch_start_;
};

}  // namespace qact::train
