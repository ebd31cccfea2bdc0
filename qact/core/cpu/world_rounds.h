// The rounds of the forward pass over several ranks: what follows from the sums (world.h). What is
// counted, and where the results are written, is left to the kind of memory that values lie in.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/world_channel.h"
#include "qact/core/cpu/world_counts.h"
#include "qact/core/cpu/world_gather.h"
#include "qact/core/exact_moments.h"
#include "qact/core/mutant.h"
#include "qact/core/world.h"

namespace qact::core::cpu {

template <class Real>
class WorldRounds : public WorldForward {
 public:
  WorldRounds(const LayerForward& call, const Rank& rank, const Execution& execution)
      : call_(call),
        rank_(rank),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)),
        channels_(call.shape.channels),
        extremes_(2 * channels_.size() + rank.ranks, -kInfinity),
        moments_(ExactMoments<Real>::kWords * channels_.size()) {}

  bool done() const override { return stage_ == Stage::done; }
  int64_t values() const override { return images_ * call_.shape.spatial; }

  Round round() override {
    const auto of = [](Reduction::Kind kind, auto& numbers) -> Reduction {
      return {kind, numbers.data(), static_cast<int64_t>(numbers.size())};
    };
    switch (stage_) {
      case Stage::summary:
        return {of(Reduction::Kind::max_f64, extremes_), of(Reduction::Kind::sum_i64, moments_)};
      case Stage::bins:
        return {histograms_.reduction()};
      case Stage::search:
        return {intervals_.reduction()};
      case Stage::gather:
        return {gathered_.reduction()};
      case Stage::done:
        break;
    }
    return {};
  }

  void next() override {
    switch (stage_) {
      case Stage::summary:
        return take_summary();
      case Stage::bins:
        return take_histograms();
      case Stage::search:
        return take_intervals();
      case Stage::gather:
        return rank_gathered();
      case Stage::done:
        return;
    }
  }

 protected:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  enum class Stage { summary, bins, search, gather, done };
  using Channel = WorldChannel<Real>;

  // Whether a round needs a channel's values.
  bool wanted(int64_t c) const {
    const Channel& channel = channels_[c];
    switch (stage_) {
      case Stage::summary:
        return true;
      case Stage::search:
        return channel.search.open();
      case Stage::gather:
        return gathered_.wants(c);
      default:
        return channel.how == How::binned;
    }
  }

  LayerForward call_;
  Rank rank_;
  Execution execution_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  std::vector<Channel> channels_;
  Stage stage_ = Stage::summary;
  int64_t images_ = 0, images_before_ = 0;  // of all ranks, and of those before this one
  std::vector<double> extremes_;            // [channels] of -low and high, [ranks] of images
  std::vector<int64_t> moments_;            // [channels] of ExactMoments' words
  WorldCounts histograms_, intervals_;
  GatheredContexts<Real> gathered_;

 private:
  void take_summary() {
    for (size_t c = 0; c < channels_.size(); ++c) {
      channels_[c].summary.low = static_cast<Real>(-extremes_[2 * c]);
      channels_[c].summary.high = static_cast<Real>(extremes_[2 * c + 1]);
    }
    for (int64_t r = 0; r < rank_.ranks; ++r) {
      const auto images = static_cast<int64_t>(extremes_[2 * channels_.size() + r]);
      if (r < rank_.rank + QACT_MUTANT("world_offset")) images_before_ += images;
      images_ += images;
    }
    const int64_t n = images_ * call_.shape.spatial;
    if (n < 2 || n > kMostValues) {
      throw std::invalid_argument(
          "[quantile_layer_world] expected 2 to 2^30 - 1 values per channel over all ranks, got " +
          std::to_string(n));
    }
    for (Channel& channel : channels_) channel.summary.n = n;
    if (n <= kGatherLimit) {
      for (size_t c = 0; c < channels_.size(); ++c) gathered_.add(static_cast<int64_t>(c));
      return go_on();
    }
    plan_channels();
  }

  void plan_channels() {
    int64_t bins = 0;
    for (size_t c = 0; c < channels_.size(); ++c) {
      Channel& channel = channels_[c];
      plan_channel(static_cast<int64_t>(c), channel);
      if (channel.how == How::exact) gathered_.add(static_cast<int64_t>(c));
      if (channel.how != How::binned) continue;
      channel.first_bin = bins;
      bins += channel.plan.bins;
    }
    if (bins == 0) return go_on();
    histograms_.clear(bins, values());
    stage_ = Stage::bins;
  }

  void plan_channel(int64_t c, Channel& channel) const {
    Summary<Real>& summary = channel.summary;
    channel.how = How::not_finite;
    summary.mean = summary.variance = std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(summary.high - summary.low)) return;
    const auto moments =
        ExactMoments<Real>::of(moments_.data() + ExactMoments<Real>::kWords * c, summary.n);
    summary.mean = moments.mean;
    summary.variance = moments.variance;
    channel.norm = ChannelNorm(call_, c, summary.mean, summary.variance);
    channel.how = channel.norm.plan(summary, call_.quantile, channel.plan);
  }

  void take_histograms() {
    histograms_.unpack();
    execution_.run(call_.shape.channels, 1, [&](int64_t begin, int64_t end) {
      BinnedChannel<Real> binned;
      for (int64_t c = begin; c < end; ++c) {
        Channel& channel = channels_[c];
        if (channel.how != How::binned) continue;
        if (!load_histogram(channel, histograms_, kernels_, tables_, call_.quantile, binned)) {
          continue;
        }
        channel.search.start(tables_, binned.bins, call_.quantile, channel.summary.low,
                             channel.summary.high, /*ties=*/call_.context != nullptr);
      }
    });
    go_on();
  }

  void take_intervals() {
    intervals_.unpack();
    for (Channel& channel : channels_) {
      if (channel.search.open()) channel.search.next(intervals_.data() + channel.first_interval);
    }
    go_on();
  }

  // To whatever is left after the histograms.
  void go_on() {
    int64_t counters = 0;
    for (Channel& channel : channels_) {
      if (!channel.search.open()) continue;
      channel.first_interval = counters;
      counters += channel.search.counters();
    }
    if (counters > 0) {
      intervals_.clear(counters, values());
      stage_ = Stage::search;
    } else {
      stage_ = gathered_.start(values()) ? Stage::gather : Stage::done;
    }
  }

  void rank_gathered() {
    gathered_.rank(call_, images_, images_before_, execution_);
    go_on();
  }
};

}  // namespace qact::core::cpu
