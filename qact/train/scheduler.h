// The learning rate of each step.
#pragma once

#include <nlohmann/json.hpp>

#include "qact/train/config.h"

namespace qact::train {

// onecycle changes with every step, the others with every epoch. All but plateau are functions of
// the step t or the epoch t, out of T:
//
//   onecycle   a half cosine up from lr/25 over the first 30% of T, then a half cosine down to
//              lr/250000; the momentum stays
//   cosine     lr (1 + cos(pi t/T)) / 2
//   step       lr gamma^(milestones passed)
//   plateau    multiplied by gamma after more than `patience` epochs whose validation accuracy did
//              not exceed the best by `threshold`; the next `cooldown` epochs do not count; not
//              below min_lr
class LrScheduler {
 public:
  LrScheduler(const TrainConfig& config, int64_t steps_per_epoch);

  // Both count from 0.
  double lr(int64_t epoch, int64_t step) const;
  // After each epoch that was validated.
  void end_epoch(double accuracy);

  nlohmann::ordered_json state_dict() const;
  void load_state_dict(const nlohmann::ordered_json& state);

 private:
  // Of plateau.
  struct State {
    double lr = 0;
    double best = -1;           // accuracy
    int64_t bad_epochs = 0;     // that did not exceed it
    int64_t cooldown_left = 0;  // epochs

    template <class Self, class Visit>
    static void visit_fields(Self& s, Visit visit) {
      visit("lr", s.lr);
      visit("best", s.best);
      visit("bad_epochs", s.bad_epochs);
      visit("cooldown_left", s.cooldown_left);
    }
  };

  TrainConfig config_;
  int64_t steps_per_epoch_;
  State state_;
};

}  // namespace qact::train
