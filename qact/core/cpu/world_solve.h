// What follows for a channel from all that its ranks have counted: its tables.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/world_channel.h"
#include "qact/core/cpu/world_gather.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

template <class Real>
class WorldSolver {
 public:
  WorldSolver(const LayerForward& call, const std::vector<WorldChannel<Real>>& channels,
              const WorldCounts& histograms, const GatheredContexts<Real>& gathered,
              const Execution& execution)
      : call_(call),
        channels_(channels),
        histograms_(histograms),
        gathered_(gathered),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)) {}

  // A channel's tables, ready to write its values.
  struct Solved {
    BinnedChannel<Real> binned;
    OutputTable<Real> output;
  };

  // written: as what values of y are.
  void solve(int64_t c, DType written, Solved& to) const {
    const WorldChannel<Real>& channel = channels_[c];
    LayerStats stats;
    if (channel.how == How::exact) {
      std::memcpy(&stats, call_.stats + c * kLayerStats, sizeof(stats));
      return set_outputs(kernels_, call_, c, stats, gathered_.levels(c), written, to.output);
    }
    CodeTable table = {};
    int64_t* context = call_.context ? call_.context + c * kContextBins : nullptr;
    if (channel.how == How::binned) {
      stats = solve_binned(channel, to, table, context);
    } else {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      stats = {channel.summary.mean, channel.summary.variance, nan, nan, 0, 0, 0, 0};
      if (context) std::fill_n(context, kContextBins, int64_t{0});
    }
    table.var_in = stats.var_in;
    table.mean_out = stats.mean_out;
    table.var_out = stats.var_out;
    set_outputs(kernels_, call_, c, stats, table.level, written, to.output);
    std::memcpy(call_.stats + c * kLayerStats, &stats, sizeof(stats));
    if (call_.table) std::memcpy(call_.table + c * kCodeTableWords, &table, sizeof(table));
  }

 private:
  LayerStats solve_binned(const WorldChannel<Real>& channel, Solved& to, CodeTable& table,
                          int64_t* context) const {
    const double weight = channel.norm.weight, bias = channel.norm.bias;
    load_histogram(channel, histograms_, kernels_, tables_, call_.quantile, to.binned);
    for (const auto& heavy : channel.search.heavy()) {
      if (!QACT_MUTANT("world_heavy_levels")) to.binned.set_level(heavy.bin, heavy.level);
    }
    const CodeCells cells = channel.norm.cells(channel.summary, call_.quantile.levels);
    CodeCounts counts;
    counts.clear(cells.farthest());
    to.binned.find_codes(tables_, cells, weight, bias, counts);
    const auto xhat = [&](int32_t bin) { return (channel.plan.centre(bin) - bias) / weight; };
    channel.search.correct(to.binned.codes(), xhat, counts);
    if (call_.table) {
      to.binned.fill_table(tables_, call_.quantile, weight, bias, counts, table);
    } else {
      std::memcpy(table.level, counts.levels(), sizeof(table.level));
    }
    if (context) to.binned.write_context(tables_, channel.search.ties(), context);
    return layer_stats(channel.summary.mean, channel.summary.variance, counts.level_sums(tables_),
                       static_cast<double>(channel.summary.n), call_.quantile.levels);
  }

  const LayerForward& call_;
  const std::vector<WorldChannel<Real>>& channels_;
  const WorldCounts& histograms_;
  const GatheredContexts<Real>& gathered_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
};

}  // namespace qact::core::cpu
