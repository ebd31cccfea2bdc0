// The last pass of the layer over several ranks, on the CPU: the codes and outputs of this rank's
// own values.
#pragma once

#include <optional>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/world_channel.h"
#include "qact/core/cpu/world_gather.h"
#include "qact/core/cpu/world_solve.h"
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
        solver_(call, channels, histograms, gathered, execution),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)) {
    if (call.shape.batch > 0) plan_.emplace(call.shape, call.x, /*reread=*/true);
  }

  void write() const {
    if (!plan_) {
      return execution_.run(call_.shape.channels, 1, [&](int64_t begin, int64_t end) {
        Solved solved;
        for (int64_t c = begin; c < end; ++c) solver_.solve(c, call_.x.dtype, solved);
      });
    }
    for_each_group(*plan_, execution_, [&](int64_t begin, int64_t end) {
      Strips<Real> x(call_.x, *plan_, kernels_, /*keeps=*/true), y(call_.y, *plan_, kernels_);
      std::vector<Solved> solved(plan_->group);
      std::vector<OutputTable<Real>> outputs(plan_->group);
      for (int64_t group = begin; group < end; ++group) {
        write_codes(group, x, y.written(), solved, outputs);
        if (!call_.y) continue;
        write_outputs(kernels_, *plan_, group, {0, plan_->tiles}, call_.code, outputs, y);
      }
    });
  }

 private:
  using Solved = typename WorldSolver<Real>::Solved;

  uint8_t* code(int64_t c, int64_t tile) const {
    return call_.code + c * call_.shape.context_size() + plan_->start(tile);
  }

  void write_codes(int64_t group, Strips<Real>& x, DType written, std::vector<Solved>& solved,
                   std::vector<OutputTable<Real>>& outputs) const {
    const int64_t first = plan_->first_channel(group);
    for (int64_t g = 0; g < plan_->channels_of(group); ++g) {
      solver_.solve(first + g, written, solved[g]);
      outputs[g] = solved[g].output;
    }
    for_each_tile(*plan_, group, [&](int64_t tile, int64_t size, int64_t g) {
      if (channels_[first + g].how == How::exact) return;  // theirs are written
      write_strip(channels_[first + g], solved[g], x.load(group, tile, g), size,
                  code(first + g, tile));
    });
  }

  void write_strip(const WorldChannel<Real>& channel, const Solved& solved, const Real* x,
                   int64_t n, uint8_t* out) const {
    if (channel.how == How::not_finite) {
      std::fill_n(out, n, uint8_t{0});
      return;
    }
    alignas(64) uint16_t bin[kLongestStrip];
    kernels_.find_bins(x, n, channel.plan.map, bin);
    Prefetch nothing = Prefetch::nothing(x);
    tables_.code_bytes(bin, n, solved.binned.codes(), channel.plan.bins, out, nothing);
    if (QACT_MUTANT("world_heavy_codes")) return;
    channel.search.correct(kernels_, bin, x, n, solved.binned.codes(), out);
  }

  const LayerForward& call_;
  const std::vector<WorldChannel<Real>>& channels_;
  WorldSolver<Real> solver_;
  const Execution& execution_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  std::optional<TilePlan> plan_;  // none where this rank has no images
};

}  // namespace qact::core::cpu
