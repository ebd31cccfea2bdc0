#include "qact/eval/shared_rows.h"

#include <chrono>
#include <thread>

#include "qact/base/jobs.h"

namespace qact::eval {

SharedRows::SharedRows(const dist::World& world, std::string name, OrderedRows& ordered,
                       int64_t parts)
    : world_(world), name_(std::move(name)), ordered_(ordered) {
  if (world_.alone() || !world_.is_first()) return;
  for (int64_t part = 0; part < parts; ++part) missing_.insert(missing_.end(), part);
  all_ended_ = world_.start_barrier();
}

void SharedRows::finish(int64_t part, results::Rows rows) {
  if (!world_.is_first()) return world_.put(key(part), results::format_rows(rows));
  ordered_.finish(part, std::move(rows));
  const std::scoped_lock lock(lock_);
  missing_.erase(part);
}

base::Progress SharedRows::collecting(const base::Progress& progress) {
  if (!all_ended_) return progress;
  return [this, progress](double share) {
    collect();
    return !progress || progress(share);
  };
}

void SharedRows::collect() {
  expect_ranks();
  std::set<int64_t> missing;
  {
    const std::scoped_lock lock(lock_);
    missing = missing_;
  }
  for (const int64_t part : missing) {
    if (const std::optional<std::string> text = world_.take(key(part))) {
      finish(part, results::parse_rows(*text, key(part)));
    }
  }
}

void SharedRows::expect_ranks() const {
  if (all_ended_->isCompleted() && !all_ended_->isSuccess()) all_ended_->wait();  // throws
}

void SharedRows::wait(const base::Progress& progress) {
  if (world_.alone()) return;
  if (all_ended_) {
    while (collect(), !missing_.empty()) {
      if (progress && !progress(1)) throw base::Interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    all_ended_->wait();
  } else {
    world_.start_barrier()->wait();
  }
}

}  // namespace qact::eval
