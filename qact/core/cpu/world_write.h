// The last pass of the layer over several ranks: from what is known of all ranks to the tables of
// every channel, and to the codes and outputs of this rank's own values.
#pragma once

#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/world_channel.h"
#include "qact/core/cpu/world_gather.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

template <class Real>
class WorldWriter {
 public:
  WorldWriter(const LayerForward& call, const std::vector<WorldChannel<Real>>& channels,
              const WorldCounts& histograms, const GatheredContexts<Real>& gathered,
              const Execution& execution)
      : call_(call),
        channels_(channels),
        histograms_(histograms),
        gathered_(gathered),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)) {
    if (call.shape.batch > 0) plan_.emplace(call.shape, call.x, /*reread=*/true);
  }

  void write() const {
    if (!plan_) {
      return execution_.run(call_.shape.channels, 1, [&](int64_t begin, int64_t end) {
        Solved solved;
        for (int64_t c = begin; c < end; ++c) solve(c, call_.x.dtype, solved);
      });
    }
    for_each_group(*plan_, execution_, [&](int64_t begin, int64_t end) {
      Strips<Real> x(call_.x, *plan_, kernels_, /*keeps=*/true), y(call_.y, *plan_, kernels_);
      std::vector<Solved> solved(plan_->group);
      std::vector<OutputTable<Real>> outputs(plan_->group);
      for (int64_t group = begin; group < end; ++group) {
        write_codes(group, x, y.written(), solved, outputs);
        if (call_.y) write_outputs(group, outputs, y);
      }
    });
  }

 private:
  // A channel's tables, ready to write its values.
  struct Solved {
    BinnedChannel<Real> binned;
    OutputTable<Real> output;
  };

  // written: as what values of y are.
  void solve(int64_t c, DType written, Solved& to) const {
    const WorldChannel<Real>& channel = channels_[c];
    LayerStats stats;
    if (channel.how == WorldHow::exact) {
      std::memcpy(&stats, call_.stats + c * kLayerStats, sizeof(stats));
      return set_outputs(kernels_, call_, c, stats, gathered_.levels(c), written, to.output);
    }
    CodeTable table = {};
    int64_t* context = call_.context ? call_.context + c * kContextBins : nullptr;
    if (channel.how == WorldHow::binned) {
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

  uint8_t* code(int64_t c, int64_t tile) const {
    return call_.code + c * call_.shape.context_size() + plan_->start(tile);
  }

  void write_codes(int64_t group, Strips<Real>& x, DType written, std::vector<Solved>& solved,
                   std::vector<OutputTable<Real>>& outputs) const {
    const int64_t first = plan_->first_channel(group);
    for (int64_t g = 0; g < plan_->channels_of(group); ++g) {
      solve(first + g, written, solved[g]);
      outputs[g] = solved[g].output;
    }
    for_each_tile(*plan_, group, [&](int64_t tile, int64_t size, int64_t g) {
      if (channels_[first + g].how == WorldHow::exact) return;  // theirs are written
      write_strip(channels_[first + g], solved[g], x.load(group, tile, g), size,
                  code(first + g, tile));
    });
  }

  void write_strip(const WorldChannel<Real>& channel, const Solved& solved, const Real* x,
                   int64_t n, uint8_t* out) const {
    if (channel.how == WorldHow::not_finite) {
      std::fill_n(out, n, uint8_t{0});
      return;
    }
    alignas(64) uint16_t bin[kLongestStrip];
    kernels_.find_bins(x, n, channel.plan.map, bin);
    Ahead nothing = Ahead::nothing(x);
    tables_.code_bytes(bin, n, solved.binned.codes(), channel.plan.bins, out, nothing);
    channel.search.correct(tables_, bin, x, n, solved.binned.codes(), out);
  }

  void write_outputs(int64_t group, const std::vector<OutputTable<Real>>& outputs,
                     Strips<Real>& y) const {
    for (int64_t tile = 0; tile < plan_->tiles; ++tile) {
      y.store_runs(group, tile, [&](void* to, RunBlock runs) {
        runs.pitch = plan_->shape.context_size();
        kernels_.layer_output(code(plan_->first_channel(group), tile), runs, outputs.data(),
                              y.written(), to);
      });
    }
  }

  const LayerForward& call_;
  const std::vector<WorldChannel<Real>>& channels_;
  const WorldCounts& histograms_;
  const GatheredContexts<Real>& gathered_;
  const Execution& execution_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  std::optional<TilePlan> plan_;  // none where this rank has no images
};

}  // namespace qact::core::cpu
