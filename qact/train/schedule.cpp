#include "qact/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qact::train {
namespace {

// From `from` at t = 0 to `to` at t = 1, flat at both ends.
double half_cosine(double from, double to, double t) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

double one_cycle(double lr, double step, double steps) {
  constexpr double kUp = 0.3, kFirst = 1.0 / 25, kLast = kFirst * 1e-4;
  const double top = std::max(0.0, kUp * steps - 1), end = steps - 1;
  if (step <= top) return half_cosine(kFirst * lr, lr, top > 0 ? step / top : 1);
  return half_cosine(lr, kLast * lr, (step - top) / (end - top));
}

}  // namespace

Schedule::Schedule(const TrainConfig& config, int64_t steps_per_epoch)
    : config_(config), steps_per_epoch_(steps_per_epoch) {
  state_.lr = config.lr;
}

double Schedule::lr(int64_t epoch, int64_t step) const {
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

void Schedule::end_epoch(double accuracy) {
  State& s = state_;
  if (accuracy > s.best + config_.threshold) {
    s.best = accuracy;
    s.waited = 0;
  } else {
    s.waited += 1;
  }
  if (s.cooling > 0) {
    s.cooling -= 1;
    s.waited = 0;
  }
  if (s.waited > config_.patience) {
    s.lr = std::max(s.lr * config_.lr_gamma, config_.min_lr);
    s.cooling = config_.cooldown;
    s.waited = 0;
  }
  if (accuracy >= s.highest + config_.early_stopping) {
    s.highest = accuracy;
    s.stalled = 0;
  } else {
    s.stalled += 1;
  }
}

bool Schedule::exhausted() const {
  return config_.early_stopping > 0 && state_.stalled > config_.early_stopping_patience;
}

template <class Any, class Visit>
void Schedule::visit_state(Any& s, Visit visit) {
  visit("lr", s.lr);
  visit("best", s.best);
  visit("waited", s.waited);
  visit("cooling", s.cooling);
  visit("highest", s.highest);
  visit("stalled", s.stalled);
}

nlohmann::ordered_json Schedule::state() const {
  nlohmann::ordered_json json;
  visit_state(state_, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

void Schedule::load(const nlohmann::ordered_json& json) {
  visit_state(state_, [&](const char* name, auto& field) { json.at(name).get_to(field); });
}

}  // namespace qact::train
