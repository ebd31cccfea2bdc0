// The forward pass over several ranks on the CPU: what each round counts of this rank's values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "qact/core/cpu/world_moments.h"
#include "qact/core/cpu/world_rounds.h"
#include "qact/core/cpu/world_write.h"
#include "qact/core/mutant.h"
#include "qact/core/world.h"

namespace qact::core {
namespace {

using namespace cpu;

template <class Real>
class Forward final : public WorldRounds<Real> {
 public:
  Forward(const LayerForward& call, const Rank& rank, const Execution& execution)
      : WorldRounds<Real>(call, rank, execution) {
    if (call.shape.batch > 0) plan_.emplace(call.shape, call.x, /*reread=*/true);
  }

  void count() override {
    switch (stage_) {
      case Stage::summary:
        return count_summary();
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

  void write() override {
    WorldWriter<Real>(call_, channels_, histograms_, gathered_, execution_).write();
  }

 private:
  using Base = WorldRounds<Real>;
  using Base::call_, Base::channels_, Base::execution_, Base::kernels_, Base::rank_, Base::stage_;
  using Base::extremes_, Base::gathered_, Base::histograms_, Base::images_before_, Base::intervals_,
      Base::moments_, Base::tables_;
  using typename Base::Channel, typename Base::Stage;

  // visit(c, tile, strip, size) for all of this rank's strips.
  template <class Visit>
  void for_each_strip(const Visit& visit) {
    if (!plan_) return;
    for_each_group(*plan_, execution_, [&](int64_t begin, int64_t end) {
      Strips<Real> x(call_.x, *plan_, kernels_, /*keeps=*/true);
      for (int64_t group = begin; group < end; ++group) {
        for_each_tile(*plan_, group, [&](int64_t tile, int64_t size, int64_t g) {
          const int64_t c = plan_->first_channel(group) + g;
          if (this->wanted(c)) visit(c, tile, x.load(group, tile, g), size);
        });
      }
    });
  }

  // A NaN or an infinity makes the sum one, and then both extremes.
  void count_summary() {
    std::vector<Moments<Real>> states(channels_.size());
    for_each_strip([&](int64_t c, int64_t tile, const Real* x, int64_t n) {
      if (tile == 0) start_moments(states[c], x[0]);
      kernels_.moments(x, n, states[c]);
      const Real bound = largest(states[c]);
      if (!std::isfinite(bound)) return;  // neither is the channel, whose moments nobody needs
      ExactMoments<Real>::add(x, n, bound, AddBlock<Real>{kernels_},
                              moments_.data() + ExactMoments<Real>::kWords * c);
    });
    for (size_t c = 0; c < channels_.size() && plan_; ++c) {
      bool imprecise = false;
      const Summary<Real> own = finish_moments(states[c], call_.shape.context_size(), imprecise);
      const bool finite = std::isfinite(own.mean);
      extremes_[2 * c] = finite ? -static_cast<double>(own.low) : Base::kInfinity;
      extremes_[2 * c + 1] = finite ? static_cast<double>(own.high) : Base::kInfinity;
    }
    extremes_[2 * channels_.size() + rank_.rank] = static_cast<double>(call_.shape.batch);
  }

  // Absolute value so far; NaN or infinity where one of the values is.
  static Real largest(const Moments<Real>& state) {
    Real out = 0;
    double sums = 0;
    for (int l = 0; l < kLanes<Real>; ++l) {
      sums += state.sum[l];
      if (state.low[l] <= state.high[l]) out = std::max({out, -state.low[l], state.high[l]});
    }
    return std::isfinite(sums) ? out : std::numeric_limits<Real>::quiet_NaN();
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
    count_bins(kernels_, *plan_, x, group, {0, channels}, own);
    for (int64_t g = 0; g < channels; ++g) {
      const Channel& channel = channels_[first + g];
      if (channel.how != How::binned) continue;
      own[g].bins.finish(tables_);
      std::copy_n(own[g].bins.count.data(), channel.plan.bins,
                  histograms_.data() + channel.first_bin);
    }
  }

  void count_intervals() {
    for_each_strip([&](int64_t c, int64_t, const Real* x, int64_t n) {
      Channel& channel = channels_[c];
      alignas(64) uint16_t bin[kLongestStrip];
      kernels_.find_bins(x, n, channel.plan.map, bin);
      channel.search.count(kernels_, bin, x, n, intervals_.data() + channel.first_interval);
    });
    intervals_.pack();
  }

  void copy_values() {
    for_each_strip([&](int64_t c, int64_t tile, const Real* x, int64_t n) {
      const int64_t at = images_before_ * call_.shape.spatial + plan_->start(tile);
      std::copy_n(x, n - QACT_MUTANT("world_gathered_tail"), gathered_.values(c) + at);
    });
  }

  std::optional<TilePlan> plan_;  // none where this rank has no images
};

}  // namespace

std::unique_ptr<WorldForward> world_forward(const LayerForward& call, const Rank& rank,
                                            const Execution& execution) {
  if (call.x.dtype == DType::f64) return std::make_unique<Forward<double>>(call, rank, execution);
  return std::make_unique<Forward<float>>(call, rank, execution);
}

}  // namespace qact::core
