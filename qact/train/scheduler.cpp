#include "qact/train/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qact/train/json_fields.h"

namespace qact::train {
namespace {

// From `from` at t = 0 to `to` at t = 1, flat at both ends.
double half_cosine(double from, double to, double t) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

double one_cycle(double lr, double step, double steps) {
  constexpr double kWarmUp = 0.3, kFirst = 1.0 / 25, kLast = kFirst * 1e-4;
  const double top = std::max(0.0, kWarmUp * steps - 1), end = steps - 1;
  if (step <= top) return half_cosine(kFirst * lr, lr, top > 0 ? step / top : 1);
  return half_cosine(lr, kLast * lr, (step - top) / (end - top));
}

}  // namespace

LrScheduler::LrScheduler(const TrainConfig& config, int64_t steps_per_epoch)
    : config_(config), steps_per_epoch_(steps_per_epoch) {
  state_.lr = config.lr;
}

double LrScheduler::lr(int64_t epoch, int64_t step) const {
  const TrainConfig& c = config_;
  if (c.lr_scheduler == "onecycle") {
    const auto steps = static_cast<double>(c.epochs * steps_per_epoch_);
    return one_cycle(c.lr, static_cast<double>(epoch * steps_per_epoch_ + step), steps);
  }
  if (c.lr_scheduler == "cosine") {
    return half_cosine(c.lr, 0, static_cast<double>(epoch) / static_cast<double>(c.epochs));
  }
  if (c.lr_scheduler == "step") {
    const auto passed = std::upper_bound(c.lr_steps.begin(), c.lr_steps.end(), epoch);
    return c.lr * std::pow(c.lr_gamma, passed - c.lr_steps.begin());
  }
  return c.lr_scheduler == "plateau" ? state_.lr : c.lr;
}

void LrScheduler::end_epoch(double accuracy) {
  State& s = state_;
  if (accuracy > s.best + config_.threshold) {
    s.best = accuracy;
    s.bad_epochs = 0;
  } else {
    s.bad_epochs += 1;
  }
  if (s.cooldown_left > 0) {
    s.cooldown_left -= 1;
    s.bad_epochs = 0;
  }
  if (s.bad_epochs > config_.patience) {
    s.lr = std::max(s.lr * config_.lr_gamma, config_.min_lr);
    s.cooldown_left = config_.cooldown;
    s.bad_epochs = 0;
  }
}

nlohmann::ordered_json LrScheduler::state_dict() const { return fields_to_json(state_); }

void LrScheduler::load_state_dict(const nlohmann::ordered_json& state) {
  fields_from_json(state, &state_);
}

}  // namespace qact::train
