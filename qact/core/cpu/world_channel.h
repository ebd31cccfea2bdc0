// What a rank knows of a channel over all ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/cpu/binned.h"
#include "qact/core/cpu/channel_norm.h"
#include "qact/core/cpu/level_search.h"
#include "qact/core/cpu/world_counts.h"

namespace qact::core::cpu {

template <class Real>
struct WorldChannel {
  How how = How::exact;  // gathered and ranked by the layer of one process
  Summary<Real> summary;
  ChannelNorm norm;
  BinPlan<Real> plan;
  int64_t first_bin = 0, first_interval = 0;  // among all channels'
  LevelSearch<Real> search;
};

// The channel's histogram, and the levels of its light bins. Returns whether there are others.
template <class Real>
bool load_histogram(const WorldChannel<Real>& channel, const WorldCounts& histograms,
                    const TensorKernels<Real>& kernels, const TableKernels& tables,
                    const Quantile& quantile, BinnedChannel<Real>& binned) {
  binned.bins.plan = channel.plan;
  binned.bins.clear(channel.summary.n);
  std::copy_n(histograms.data() + channel.first_bin, channel.plan.bins, binned.bins.count.data());
  return binned.solve(kernels, tables, quantile);
}

}  // namespace qact::core::cpu
