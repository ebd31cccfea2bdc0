#include "qact/train/early_stopping.h"

#include "qact/train/json_fields.h"

namespace qact::train {

void EarlyStopping::end_epoch(double accuracy) {
  if (accuracy >= state_.best + min_rise_) {
    state_.best = accuracy;
    state_.bad_epochs = 0;
  } else {
    state_.bad_epochs += 1;
  }
}

bool EarlyStopping::should_stop() const { return min_rise_ > 0 && state_.bad_epochs > patience_; }

nlohmann::ordered_json EarlyStopping::state_dict() const { return fields_to_json(state_); }

void EarlyStopping::load_state_dict(const nlohmann::ordered_json& state) {
  fields_from_json(state, &state_);
}

}  // namespace qact::train
