// The fused layer's forward pass on CPU: moments, histogram, one small solve per channel, a
// level byte per value, and the output from the levels once their moments are known.
#include "qact/core/cpu/layer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/exact.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using namespace cpu;

// Up to this many values, counting all ranks beats sorting.
constexpr int64_t kCountRanks = 256;

template <class Real>
class Forward {
 public:
  Forward(const LayerForward& call, const TilePlan& plan, const Execution& execution)
      : call_(call),
        quantile_(call.quantile),
        plan_(plan),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)),
        x_(call.x, plan, kernels_, /*keeps=*/true),
        y_(call.y, plan, kernels_),
        bins_(channels_at_once(plan)),
        channels_(channels_at_once(plan)),
        norms_(plan.group) {}

  void run(int64_t group) {
    const int64_t channels = plan_.channels_of(group), step = channels_at_once(plan_);
    summarise(kernels_, plan_, x_, group, summaries_, execution_);
    for (int64_t g = 0; g < channels; g += step) {
      solve(group, {g, std::min(g + step, channels)});
    }
    if (!call_.y) return;
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& y) {
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        y.store_runs(group, tile, [&](Real* to, RunBlock runs) {
          runs.pitch = plan_.shape.context_size();
          kernels_.layer_output(level(group, 0, tile), runs, norms_.data(), to);
        });
      }
    };
    for_each_block(plan_, execution_, write, y_);
  }

 private:
  enum class How { binned, exact, not_finite };
  struct Channel {
    How how;
    Norm norm;
    // If exact: the levels of all values, and the context they were ranked in.
    std::vector<int32_t> level;
    SortedContext<Real> context;
  };

  // All but the output.
  void solve(int64_t group, const ChannelRange& range) {
    first_ = range.begin;
    for (int64_t g = range.begin; g < range.end; ++g) plan_channel(group, g);
    count_bins(kernels_, tables_, plan_, x_, group, range, bins_, execution_);
    solve_bins(kernels_, tables_, quantile_, plan_, x_, group, range, bins_);
    for (int64_t g = range.begin; g < range.end; ++g) {
      if (channel_of(g).how == How::exact) rank_channel(group, g);
    }
    const int64_t channels = range.end - range.begin;
    sums_.assign(plan_.blocks * channels, {});
    const auto find = [&](int64_t block, const TileRange& tiles, Strips<Real>& x) {
      for_each_tile(plan_, tiles, range, [&](int64_t tile, int64_t, int64_t g) {
        find_levels(group, x, tile, g, sums_[block * channels + g - first_]);
      });
    };
    for_each_block(plan_, execution_, find, x_);
    for (int64_t g = range.begin; g < range.end; ++g) {
      for (int64_t b = 1; b < plan_.blocks - QACT_MUTANT("level_sums_last_block"); ++b)
        sums_[g - first_] += sums_[b * channels + g - first_];
      finish_channel(plan_.first_channel(group) + g, g);
    }
  }

  Channel& channel_of(int64_t g) { return channels_[g - first_]; }
  BinnedChannel<Real>& bins_of(int64_t g) { return bins_[g - first_]; }

  Affine<Real> affine(const Norm& norm) const {
    return {static_cast<Real>(norm.mean), static_cast<Real>(norm.scale),
            static_cast<Real>(norm.shift)};
  }

  void plan_channel(int64_t group, int64_t g) {
    const int64_t c = plan_.first_channel(group) + g;
    const Summary<Real>& summary = summaries_[g];
    Channel& channel = channel_of(g);
    channel.norm = {summary.mean,
                    call_.weight_in.at(c, 1.0) /
                        std::sqrt(summary.variance + (QACT_MUTANT("eps_in") ? 0 : call_.eps)),
                    call_.bias_in.at(c, 0.0)};
    bins_of(g).bins.plan = {};
    if (!summary.finite() || !std::isfinite(channel.norm.scale) ||
        !std::isfinite(channel.norm.shift)) {
      channel.how = How::not_finite;
    } else if (!quantile_.exact_for(summary.n) &&
               bins_of(g).bins.plan.make(summary, channel.norm, quantile_.bandwidth)) {
      channel.how = How::binned;
    } else {
      bins_of(g).bins.plan = {};
      channel.how = How::exact;
    }
  }

  void rank_channel(int64_t group, int64_t g) {
    Channel& channel = channel_of(g);
    const int64_t n = plan_.shape.context_size();
    std::vector<Real>& z = channel.context.values;
    z.resize(n);
    const Affine<Real> map = affine(channel.norm);
    for (int64_t tile = 0; tile < plan_.tiles; ++tile) {
      kernels_.affine(x_.load(group, tile, g), plan_.size(tile), map, z.data() + plan_.start(tile));
    }
    channel.level.resize(n + kLanes<Real>);
    if (n <= kCountRanks) {
      count_ranks(channel, n);
    } else {
      sort_ranks(channel, n);
    }
  }

  void count_ranks(Channel& channel, int64_t n) {
    const std::vector<Real>& z = channel.context.values;
    int32_t* rank = channel.level.data();
    kernels_.ranks(z.data(), static_cast<int32_t>(n), rank);
    int64_t negatives = 0;
    for (const Real v : z) negatives += v < 0;
    channel.context.negatives = negatives;
    const LevelRule rule(quantile_, negatives, n - negatives);
    for (int64_t i = 0; i < n; ++i) {
      const bool positive = QACT_MUTANT("ranks_zero_is_negative") ? z[i] > 0 : z[i] >= 0;
      const int64_t own = positive ? rank[i] - negatives + (z[i] >= quantile_.bound)
                                   : rank[i] + (z[i] >= -quantile_.bound);
      rank[i] = rule.level(positive, own);
    }
  }

  void sort_ranks(Channel& channel, int64_t n) {
    z_ = channel.context.values;
    channel.context.sort();
    levels_.build(channel.context, quantile_);
    kernels_.search(z_.data(), n, levels_.thresholds.data(), levels_.reached, channel.level.data());
    channel.context.values = z_;
  }

  void keep_density(int64_t c, int64_t g, LayerStats& stats) {
    const Channel& channel = channel_of(g);
    int32_t* nodes = call_.density + c * kDensityNodes;
    if (channel.how == How::binned) {
      bins_of(g).pack_density(tables_, quantile_, channel.norm, nodes, stats);
    } else if (channel.how == How::exact) {
      const LevelRule rule(quantile_, channel.context.negatives,
                           plan_.shape.context_size() - channel.context.negatives);
      const DensityRange range = density_range(channel.context, rule);
      grid_.reset(range.low, range.high, quantile_.bandwidth);
      for (const Real z : channel.context.values) grid_.add(z, rule.weight(z >= 0));
      grid_.add(-quantile_.bound, rule.weight(false));
      grid_.add(quantile_.bound, rule.weight(true));
      grid_.finish(tables_);
      pack_density(tables_, grid_, range, rule, channel.norm, nodes, stats);
    } else {
      std::fill(nodes, nodes + kDensityNodes, 0);
    }
  }

  DensityRange density_range(const SortedContext<Real>& context, const LevelRule& rule) {
    const std::vector<Real>& z = context.values;
    const auto [low, high] = std::minmax_element(z.begin(), z.end());
    if (DensityRange::fits(*low, *high, quantile_.bandwidth)) return {*low, *high, false};
    z_ = z;
    const auto inner = [&](int64_t rank) -> double {
      std::nth_element(z_.begin(), z_.begin() + rank, z_.end());
      return z_[rank];
    };
    const int64_t n = static_cast<int64_t>(z.size());
    const ClippedCounts clipped(rule, context.negatives, n - context.negatives);
    return DensityRange::clip(inner(clipped.low), inner(n - 1 - clipped.high), *low, *high,
                              quantile_.bandwidth);
  }

  // The outer norm from the sums of levels, and all that is kept per channel.
  void finish_channel(int64_t c, int64_t g) {
    Channel& channel = channel_of(g);
    const int levels = quantile_.levels;
    const double n = static_cast<double>(plan_.shape.context_size());
    const double sum = static_cast<double>(sums_[g - first_].k);
    const double square = static_cast<double>(sums_[g - first_].square);
    LayerStats stats{summaries_[g].mean, summaries_[g].variance, sum / n / levels, 0, 0, 0, 0, 0};
    stats.var_out = std::max(0.0, square / n / levels / levels - stats.mean_out * stats.mean_out);
    if (channel.how == How::not_finite) {
      stats.mean_out = stats.var_out = std::numeric_limits<double>::quiet_NaN();
    }
    const double scale = call_.weight_out.at(c, 1.0) /
                         std::sqrt(stats.var_out + (QACT_MUTANT("eps_out") ? 0 : call_.eps));
    norms_[g] = {static_cast<Real>(scale / levels),
                 static_cast<Real>(call_.bias_out.at(c, 0.0) -
                                   (QACT_MUTANT("mean_out") ? 0 : scale * stats.mean_out))};
    if (call_.density) keep_density(c, g, stats);
    if (call_.context) write_context(c, g);
    std::memcpy(call_.stats + c * kLayerStats, &stats, sizeof(stats));
  }

  void write_context(int64_t c, int64_t g) {
    int64_t* row = call_.context + c * kContextBins;
    if (channel_of(g).how == How::binned) return bins_of(g).write_context(tables_, row);
    std::fill(row, row + kContextBins, 0);
    if (channel_of(g).how == How::not_finite) return;
    for (const Real z : channel_of(g).context.values) {
      row[context_bin(static_cast<float>(z))] += kContextUnit;
    }
  }

  uint8_t* level(int64_t group, int64_t g, int64_t tile) const {
    return call_.level + (plan_.first_channel(group) + g) * plan_.shape.context_size() +
           plan_.start(tile);
  }

  void find_levels(int64_t group, Strips<Real>& x, int64_t tile, int64_t g, LevelSums& sums) {
    const Channel& channel = channel_of(g);
    const int64_t start = plan_.start(tile), size = plan_.size(tile);
    uint8_t* out = level(group, g, tile);
    if (channel.how == How::binned) {
      Ahead written = y_.ahead(group, tile, g, /*tensors=*/3);
      alignas(64) uint16_t room[kLongestStrip];
      const uint16_t* found = bins_of(g).bins.find(kernels_, x.load(group, tile, g), size, room);
      tables_.level_bytes(found, size, bins_of(g).levels(), bins_of(g).bins.plan.bins, out, sums,
                          written);
      for_each_exception(bins_of(g).exceptions(), start, size, [&](int64_t i, int32_t level) {
        sums.remove(out[i]);
        sums.add(level);
        out[i] = static_cast<uint8_t>(level);
      });
    } else if (channel.how == How::exact) {
      for (int64_t i = 0; i < size; ++i) {
        sums.add(channel.level[start + i]);
        out[i] = static_cast<uint8_t>(channel.level[start + i]);
      }
    } else {
      std::fill(out, out + size, uint8_t{0});
    }
  }

  const LayerForward& call_;
  const Quantile& quantile_;
  const TilePlan& plan_;
  const Execution& execution_;  // of a lone group's blocks
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  Strips<Real> x_, y_;
  std::vector<Summary<Real>> summaries_;
  std::vector<BinnedChannel<Real>> bins_;  // of the channels that are being solved,
  std::vector<Channel> channels_;
  std::vector<LevelSums> sums_;  // [blocks][channels]
  int64_t first_ = 0;            // from this one of the group on
  std::vector<OuterNorm<Real>> norms_;
  MemberLevels<Real> levels_;
  DensityGrid grid_;
  std::vector<Real> z_;
};

}  // namespace

void cpu::layer_forward_whole(const LayerForward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x, /*reread=*/1);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Forward<Real> forward(call, plan, execution);
      for (int64_t group = begin; group < end; ++group) forward.run(group);
    });
  });
}

}  // namespace qact::core
