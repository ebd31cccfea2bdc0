// How far a training run is.
#pragma once

#include <cstdint>

namespace qact::train {

// Between two steps, or before a validation.
struct TrainProgress {
  int64_t epoch = 0;    // epochs done and validated
  int64_t step = 0;     // steps done of the current epoch
  double loss_sum = 0;  // over these
  double best = -1;     // validation accuracy
  int64_t best_epoch = 0;
  bool finished = false;

  template <class Self, class Visit>
  static void visit_fields(Self& p, Visit visit) {
    visit("epoch", p.epoch);
    visit("step", p.step);
    visit("loss_sum", p.loss_sum);
    visit("best", p.best);
    visit("best_epoch", p.best_epoch);
    visit("finished", p.finished);
  }
};

}  // namespace qact::train
