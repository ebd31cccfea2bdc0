// The loop of training: steps, epochs, and what is saved when.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <memory>
#include <optional>

#include "qact/losses/loss.h"
#include "qact/models/network.h"
#include "qact/train/graphed_network.h"
#include "qact/train/model_file.h"
#include "qact/train/optimiser.h"
#include "qact/train/schedule.h"
#include "qact/train/train.h"
#include "qact/train/training_data.h"

namespace qact::train {

class Trainer {
 public:
  Trainer(const TrainConfig& config, const RunFolder& folder, const TrainEvents& events);

  // Saves where a run begins, so that it can be resumed from then on.
  void begin();
  // From the folder's state. Throws where it is of other options or data.
  void restore();
  TrainResult run();

 private:
  // Where the run is: between two steps, or before a validation.
  struct Progress {
    int64_t epoch = 0;    // done, validated
    int64_t step = 0;     // done, of the epoch under way
    double loss_sum = 0;  // over those
    double best = -1;     // validation accuracy
    int64_t best_epoch = 0;
    bool finished = false;
  };
  template <class Any, class Visit>
  static void visit_progress(Any& p, Visit visit);

  struct Validation {
    double accuracy = 0, loss = 0;
  };

  // Each returns false, or nothing, once it was told to stop.
  bool train_epoch();
  bool end_epoch();
  std::optional<Validation> validate();
  bool report();

  double take_step();
  bool records() const;
  models::NetworkOutput forward(const torch::Tensor& images);
  torch::Tensor loss_of(const models::NetworkOutput& output, const torch::Tensor& labels,
                        base::Random random) const;
  [[noreturn]] void stop_at(const Batch& batch, double loss);
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
  const losses::Loss loss_;
  TrainingData data_;
  const int64_t steps_;  // in an epoch
  const std::shared_ptr<models::Network> network_;
  Optimiser optimiser_;
  Schedule schedule_;
  std::optional<GraphedNetwork> recorded_;
  Progress progress_;
  results::Rows rows_;

  int64_t first_step_ = 0;  // when the run began or went on
  int64_t images_ = 0;      // of the epoch, seen since then
  std::chrono::steady_clock::time_point epoch_start_;
};

}  // namespace qact::train
