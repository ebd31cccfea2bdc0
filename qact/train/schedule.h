// The learning rate of each step, and when to stop.
#pragma once

#include <nlohmann/json.hpp>

#include "qact/train/config.h"

namespace qact::train {

// onecycle moves with every step, the others with every epoch; all but plateau are functions
// of how far the run is, T being its length:
//
//   onecycle   half a cosine up from lr/25 over the first 30% of T, half a cosine down to
//              lr/250000; the momentum stays
//   cosine     lr (1 + cos(pi t/T)) / 2
//   step       lr gamma^(steps passed)
//   plateau    lr gamma after `patience` epochs whose validation accuracy was no better than
//              the best by `threshold`; then none of `cooldown` epochs counts; not below min_lr
class Schedule {
 public:
  Schedule(const TrainConfig& config, int64_t steps_per_epoch);

  // Both from 0.
  double lr(int64_t epoch, int64_t step) const;
  // After each epoch that was validated.
  void end_epoch(double accuracy);
  // Early stopping has had enough.
  bool exhausted() const;

  nlohmann::ordered_json state() const;
  void load(const nlohmann::ordered_json& state);

 private:
  TrainConfig config_;
  int64_t steps_per_epoch_;

  struct State {
    double lr = 0;        // of plateau
    double best = -1;     // accuracy that plateau compares with
    int64_t waited = 0;   // epochs no better than that
    int64_t cooling = 0;  // epochs of cooldown left
    double highest = -1;  // accuracy that early stopping compares with
    int64_t stalled = 0;  // epochs no better than that
  } state_;
  template <class Any, class Visit>
  static void visit_state(Any& s, Visit visit);
};

}  // namespace qact::train
