// Stops a run whose validation accuracy no longer rises.
#pragma once

#include <nlohmann/json.hpp>

#include "qact/train/config.h"

namespace qact::train {

class EarlyStopping {
 public:
  // Off where config.early_stopping is 0.
  explicit EarlyStopping(const TrainConfig& config)
      : min_rise_(config.early_stopping), patience_(config.early_stopping_patience) {}

  // After each epoch that was validated.
  void end_epoch(double accuracy);
  // Whether more than `patience` epochs in a row did not rise by config.early_stopping.
  bool should_stop() const;

  nlohmann::ordered_json state_dict() const;
  void load_state_dict(const nlohmann::ordered_json& state);

 private:
  struct State {
    double best = -1;        // accuracy
    int64_t bad_epochs = 0;  // that did not rise above it

    template <class Self, class Visit>
    static void visit_fields(Self& s, Visit visit) {
      visit("best", s.best);
      visit("bad_epochs", s.bad_epochs);
    }
  };

  double min_rise_;
  int64_t patience_;
  State state_;
};

}  // namespace qact::train
