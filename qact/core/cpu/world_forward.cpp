// The forward pass over several ranks: what is counted in each round, and what follows from the
// sums (world.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/fixed_moments.h"
#include "qact/core/cpu/world_channel.h"
#include "qact/core/cpu/world_counts.h"
#include "qact/core/cpu/world_gather.h"
#include "qact/core/cpu/world_write.h"
#include "qact/core/mutant.h"
#include "qact/core/world.h"

namespace qact::core {
namespace {

using namespace cpu;

template <class Real>
class Forward final : public WorldForward {
 public:
  Forward(const LayerForward& call, const Rank& rank, const Execution& execution)
      : call_(call),
        rank_(rank),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)),
        channels_(call.shape.channels),
        extremes_(2 * channels_.size() + rank.ranks, -kInfinity) {
    if (call.shape.batch > 0) plan_.emplace(call.shape, call.x, /*reread=*/true);
  }

  bool done() const override { return stage_ == Stage::done; }
  int64_t values() const override { return images_ * call_.shape.spatial; }

  Round round() override {
    const auto of = [](Round::Kind kind, auto& numbers) -> Round {
      return {kind, numbers.data(), static_cast<int64_t>(numbers.size())};
    };
    switch (stage_) {
      case Stage::extremes:
        return of(Round::Kind::max_f64, extremes_);
      case Stage::moments:
        return of(Round::Kind::sum_i64, moments_);
      case Stage::bins:
        return histograms_.round();
      case Stage::search:
        return intervals_.round();
      case Stage::gather:
        return gathered_.round();
      case Stage::done:
        break;
    }
    return {};
  }

  void count() override {
    switch (stage_) {
      case Stage::extremes:
        return count_extremes();
      case Stage::moments:
        return count_moments();
      case Stage::bins:
        return count_histograms();
      case Stage::search:
        return count_intervals();
      case Stage::gather:
        return copy_values();
      case Stage::done:
        return;
    }
  }

  void next() override {
    switch (stage_) {
      case Stage::extremes:
        return take_extremes();
      case Stage::moments:
        return take_moments();
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

  void write() override {
    WorldWriter<Real>(call_, channels_, histograms_, gathered_, execution_).write();
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  enum class Stage { extremes, moments, bins, search, gather, done };
  using How = WorldHow;
  using Channel = WorldChannel<Real>;

  // visit(c, tile, strip, size) for all of this rank's strips.
  template <class Visit>
  void for_each_strip(const Visit& visit) {
    if (!plan_) return;
    for_each_group(*plan_, execution_, [&](int64_t begin, int64_t end) {
      Strips<Real> x(call_.x, *plan_, kernels_, /*keeps=*/true);
      for (int64_t group = begin; group < end; ++group) {
        for_each_tile(*plan_, group, [&](int64_t tile, int64_t size, int64_t g) {
          const int64_t c = plan_->first_channel(group) + g;
          if (wanted(c)) visit(c, tile, x.load(group, tile, g), size);
        });
      }
    });
  }

  // Whether a round needs a channel's values.
  bool wanted(int64_t c) const {
    const Channel& channel = channels_[c];
    switch (stage_) {
      case Stage::extremes:
        return true;
      case Stage::moments:
        return std::isfinite(channel.summary.high - channel.summary.low);
      case Stage::search:
        return channel.search.open();
      case Stage::gather:
        return gathered_.wants(c);
      default:
        return channel.how == How::binned;
    }
  }

  // A NaN or an infinity makes the sum one, and then both extremes.
  void count_extremes() {
    std::vector<Moments<Real>> states(channels_.size());
    for_each_strip([&](int64_t c, int64_t tile, const Real* x, int64_t n) {
      if (tile == 0) start_moments(states[c], x[0]);
      kernels_.moments(x, n, states[c]);
    });
    for (size_t c = 0; c < channels_.size() && plan_; ++c) {
      bool imprecise = false;
      const Summary<Real> own = finish_moments(states[c], call_.shape.context_size(), imprecise);
      const bool finite = std::isfinite(own.mean);
      extremes_[2 * c] = finite ? -static_cast<double>(own.low) : kInfinity;
      extremes_[2 * c + 1] = finite ? static_cast<double>(own.high) : kInfinity;
    }
    extremes_[2 * channels_.size() + rank_.rank] = static_cast<double>(call_.shape.batch);
  }

  void take_extremes() {
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
    if (n < 2 || n > (int64_t{1} << 30)) {
      throw std::invalid_argument(
          "[quantile_layer_world] expected 2 to 2^30 values per channel over all ranks, got " +
          std::to_string(n));
    }
    for (Channel& channel : channels_) channel.summary.n = n;
    if (n <= kGatherLimit) {
      for (size_t c = 0; c < channels_.size(); ++c) gathered_.add(static_cast<int64_t>(c));
      return go_on();
    }
    moments_.assign(FixedMoments::kWords * channels_.size(), 0);
    stage_ = Stage::moments;
  }

  FixedMoments fixed(const Channel& channel) const {
    return {static_cast<double>(channel.summary.low), static_cast<double>(channel.summary.high)};
  }

  void count_moments() {
    for_each_strip([&](int64_t c, int64_t, const Real* x, int64_t n) {
      fixed(channels_[c]).add(x, n, moments_.data() + FixedMoments::kWords * c);
    });
  }

  void take_moments() {
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
    const auto moments = fixed(channel).of(moments_.data() + FixedMoments::kWords * c, summary.n);
    summary.mean = moments.mean;
    summary.variance = moments.variance;
    channel.norm = ChannelNorm(call_, c, summary.mean, summary.variance);
    if (!summary.finite() || !channel.norm.finite()) return;
    const bool binned = channel.norm.bins(summary, call_.quantile, channel.plan);
    channel.how = binned ? How::binned : How::exact;
  }

  void count_histograms() {
    if (plan_) {
      for_each_group(*plan_, execution_, [&](int64_t begin, int64_t end) {
        Strips<Real> x(call_.x, *plan_, kernels_, /*keeps=*/true);
        std::vector<BinnedChannel<Real>> own(plan_->group);
        for (int64_t group = begin; group < end; ++group) count_group(group, x, own);
      });
    }
    histograms_.pack();
  }

  void count_group(int64_t group, Strips<Real>& x, std::vector<BinnedChannel<Real>>& own) {
    const int64_t first = plan_->first_channel(group), channels = plan_->channels_of(group);
    for (int64_t g = 0; g < channels; ++g) own[g].bins.plan = channels_[first + g].plan;
    count_bins(kernels_, tables_, *plan_, x, group, {0, channels}, own);
    for (int64_t g = 0; g < channels; ++g) {
      const Channel& channel = channels_[first + g];
      if (channel.how != How::binned) continue;
      own[g].bins.finish(tables_);
      std::copy_n(own[g].bins.count.data(), channel.plan.bins,
                  histograms_.data() + channel.first_bin);
    }
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

  void count_intervals() {
    for_each_strip([&](int64_t c, int64_t, const Real* x, int64_t n) {
      Channel& channel = channels_[c];
      alignas(64) uint16_t bin[kLongestStrip];
      kernels_.find_bins(x, n, channel.plan.map, bin);
      channel.search.count(tables_, bin, x, n, intervals_.data() + channel.first_interval);
    });
    intervals_.pack();
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

  void copy_values() {
    for_each_strip([&](int64_t c, int64_t tile, const Real* x, int64_t n) {
      const int64_t at = images_before_ * call_.shape.spatial + plan_->start(tile);
      std::copy_n(x, n, gathered_.values(c) + at);
    });
  }

  void rank_gathered() {
    gathered_.rank(call_, images_, images_before_, execution_);
    go_on();
  }

  LayerForward call_;
  Rank rank_;
  Execution execution_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  std::optional<TilePlan> plan_;  // none where this rank has no images
  std::vector<Channel> channels_;
  Stage stage_ = Stage::extremes;
  int64_t images_ = 0, images_before_ = 0;  // of all ranks, and of those before this one
  std::vector<double> extremes_;            // [channels] of -low and high, [ranks] of images
  std::vector<int64_t> moments_;
  WorldCounts histograms_, intervals_;
  GatheredContexts<Real> gathered_;
};

}  // namespace

std::unique_ptr<WorldForward> world_forward(const LayerForward& call, const Rank& rank,
                                            const Execution& execution) {
  if (call.x.dtype == DType::f64) return std::make_unique<Forward<double>>(call, rank, execution);
  return std::make_unique<Forward<float>>(call, rank, execution);
}

}  // namespace qact::core
