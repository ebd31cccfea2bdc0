// The fused layer's forward pass on CPU: moments, histogram, one small solve per channel, and a
// code byte per value, from which the output follows.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/context_ties.h"
#include "qact/core/cpu/channel_norm.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/long_density.h"
#include "qact/core/cpu/scope.h"
#include "qact/core/exact.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"
#include "qact/core/sort.h"

namespace qact::core {
namespace {

using namespace cpu;

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
        outputs_(plan.group) {}

  void run(int64_t group) {
    const int64_t channels = plan_.channels_of(group), step = channels_at_once(plan_);
    summarise(kernels_, plan_, x_, group, summaries_, execution_);
    for (int64_t g = 0; g < channels; g += step) {
      solve(group, {g, std::min(g + step, channels)});
    }
    if (!call_.y) return;
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& y) {
      write_outputs(kernels_, plan_, group, tiles, call_.code, outputs_, y);
    };
    for_each_block(plan_, execution_, write, y_);
  }

 private:
  struct Channel {
    How how;
    ChannelNorm norm;
    CodeCounts counts;
    // If exact: the codes of all values, and the context they were ranked in.
    std::vector<int32_t> code;
    SortedContext<Real> context;
  };

  // All but the output.
  void solve(int64_t group, const ChannelRange& range) {
    first_ = range.begin;
    for (int64_t g = range.begin; g < range.end; ++g) plan_channel(group, g);
    count_bins(kernels_, plan_, x_, group, range, bins_, execution_);
    solve_bins(kernels_, tables_, quantile_, plan_, x_, group, range, bins_);
    for (int64_t g = range.begin; g < range.end; ++g) {
      Channel& channel = channel_of(g);
      const CodeCells cells = channel.norm.cells(summaries_[g], quantile_.levels);
      channel.counts.clear(cells.farthest());
      if (channel.how == How::exact) rank_channel(group, g, cells);
      if (channel.how == How::binned) {
        bins_of(g).find_codes(tables_, cells, channel.norm.weight, channel.norm.bias,
                              channel.counts);
      }
      finish_channel(plan_.first_channel(group) + g, g);
    }
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& x) {
      for_each_tile(plan_, tiles, range,
                    [&](int64_t tile, int64_t, int64_t g) { write_codes(group, x, tile, g); });
    };
    for_each_block(plan_, execution_, write, x_);
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
    channel.norm = ChannelNorm(call_, c, summary.mean, summary.variance);
    channel.how = channel.norm.plan(summary, quantile_, bins_of(g).bins.plan);
  }

  void rank_channel(int64_t group, int64_t g, const CodeCells& cells) {
    Channel& channel = channel_of(g);
    const int64_t n = plan_.shape.context_size();
    const auto map_values = [&](const Affine<Real>& map, std::vector<Real>& to) {
      to.resize(n);
      for (int64_t tile = 0; tile < plan_.tiles; ++tile) {
        kernels_.affine(x_.load(group, tile, g), plan_.size(tile), map,
                        to.data() + plan_.start(tile));
      }
    };
    map_values(affine(channel.norm.z), channel.context.values);
    channel.code.resize(n + kLanes<Real>);
    sort_ranks(channel, n);
    map_values(
        affine({summaries_[g].mean, std::copysign(channel.norm.inverse, channel.norm.weight), 0}),
        z_);
    add_cells(channel, cells, n);
  }

  // From levels to codes; z_ holds xhat in the order of z.
  void add_cells(Channel& channel, const CodeCells& cells, int64_t n) {
    edges_.assign(kCodes - 1, std::numeric_limits<Real>::infinity());
    for (int j = 1; j < cells.cells(); ++j) edges_[j - 1] = static_cast<Real>(cells.edge(j));
    cell_.resize(n + kLanes<Real>);
    kernels_.search(z_.data(), n, edges_.data(), cells.cells() - 1, cell_.data());
    const double sign = channel.norm.weight < 0 ? -1 : 1;
    for (int64_t i = QACT_MUTANT("exact_first_cell"); i < n; ++i) {
      const int32_t level = channel.code[i];
      channel.code[i] += cell_[i];
      channel.counts.add(channel.code[i], level, 1, sign * static_cast<double>(z_[i]));
    }
  }

  void sort_ranks(Channel& channel, int64_t n) {
    z_ = channel.context.values;
    channel.context.sort();
    levels_.build(channel.context, quantile_);
    kernels_.search(z_.data(), n, levels_.thresholds.data(), levels_.reached, channel.code.data());
    channel.context.values = z_;
  }

  void fill_table(int64_t g, const LayerStats& stats, CodeTable& table) {
    Channel& channel = channel_of(g);
    table = {};
    table.var_in = stats.var_in;
    table.mean_out = stats.mean_out;
    table.var_out = stats.var_out;
    if (channel.how == How::binned) {
      bins_of(g).fill_table(tables_, quantile_, channel.norm.weight, channel.norm.bias,
                            channel.counts, table);
    } else if (channel.how == How::exact) {
      fill_exact_table(channel, table);
    }
  }

  void fill_exact_table(Channel& channel, CodeTable& table) {
    const std::vector<Real>& z = channel.context.values;
    const auto n = static_cast<double>(z.size());
    const LevelRule rule(quantile_, channel.context.negatives,
                         static_cast<int64_t>(z.size()) - channel.context.negatives);
    const auto [low, high] = std::minmax_element(z.begin(), z.end());
    if (!DensityGrid::fits(*low, *high, quantile_.bandwidth)) {
      return channel.counts.fill(tables_, sum_densities(channel, rule).data(), n, table);
    }
    grid_.reset(*low, *high, quantile_.bandwidth);
    for (const Real value : z) grid_.add(value, rule.weight(value >= 0));
    grid_.add(-quantile_.bound, rule.weight(false));
    grid_.add(quantile_.bound, rule.weight(true));
    grid_.finish(tables_);
    channel.counts.fill(tables_, grid_, channel.norm.weight, channel.norm.bias, n, table);
  }

  // By code.
  std::array<double, kCodes> sum_densities(const Channel& channel, const LevelRule& rule) {
    const std::vector<Real>& z = channel.context.values;
    LongDensity density(quantile_, rule);
    z_ = z;
    sort_values(z_.data(), static_cast<int64_t>(z_.size()), scratch_);
    for (const Real value : z_) density.add(value);
    density.finish();
    std::array<double, kCodes> sums = {};
    for (size_t i = 0; i < z.size(); ++i) sums[channel.code[i]] += density.at(z[i]);
    return sums;
  }

  // The outer norm from the sums of levels, and all that is kept per channel.
  void finish_channel(int64_t c, int64_t g) {
    Channel& channel = channel_of(g);
    const double n = static_cast<double>(plan_.shape.context_size());
    LayerStats stats = layer_stats(summaries_[g].mean, summaries_[g].variance,
                                   channel.counts.level_sums(tables_), n, quantile_.levels);
    if (channel.how == How::not_finite) {
      stats.mean_out = stats.var_out = std::numeric_limits<double>::quiet_NaN();
    }
    set_outputs(kernels_, call_, c, stats, channel.counts.levels(), y_.written(), outputs_[g]);
    if (call_.table) {
      fill_table(g, stats, *reinterpret_cast<CodeTable*>(call_.table + c * kCodeTableWords));
    }
    if (call_.context) write_context(c, g);
    std::memcpy(call_.stats + c * kLayerStats, &stats, sizeof(stats));
  }

  void write_context(int64_t c, int64_t g) {
    int64_t* row = call_.context + c * kContextBins;
    if (channel_of(g).how == How::binned) return bins_of(g).write_context(tables_, row);
    if (channel_of(g).how == How::exact) {
      z_ = channel_of(g).context.values;
    } else {
      z_.clear();
    }
    count_context(z_, scratch_, row);
  }

  uint8_t* code(int64_t group, int64_t g, int64_t tile) const {
    return call_.code + (plan_.first_channel(group) + g) * plan_.shape.context_size() +
           plan_.start(tile);
  }

  void write_codes(int64_t group, Strips<Real>& x, int64_t tile, int64_t g) {
    const Channel& channel = channel_of(g);
    const int64_t start = plan_.start(tile), size = plan_.size(tile);
    uint8_t* out = code(group, g, tile);
    if (channel.how == How::binned) {
      Prefetch written = y_.prefetch(group, tile, g);
      alignas(64) uint16_t scratch[kLongestStrip];
      const uint16_t* found =
          bins_of(g).bins.find(kernels_, x.load(group, tile, g), start, size, scratch);
      tables_.code_bytes(found, size, bins_of(g).codes(), bins_of(g).bins.plan.bins, out, written);
      for_each_override(bins_of(g).overrides(), start, size, [&](int64_t i, const Override& o) {
        out[i] = static_cast<uint8_t>(bins_of(g).code(o));
      });
    } else if (channel.how == How::exact) {
      for (int64_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(channel.code[start + i]);
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
  int64_t first_ = 0;  // from this one of the group on
  std::vector<OutputTable<Real>> outputs_;
  MemberLevels<Real> levels_;
  DensityGrid grid_;
  std::vector<Real> z_, edges_;
  std::vector<int32_t> cell_;
  std::vector<uint8_t> scratch_;
};

}  // namespace

void cpu::layer_forward_whole(const LayerForward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x, /*reread=*/true);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Forward<Real> forward(call, plan, execution);
      for (int64_t group = begin; group < end; ++group) forward.run(group);
    });
  });
}

}  // namespace qact::core
