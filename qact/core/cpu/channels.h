// What the drivers share: groups of channels in parallel, and the passes over one group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "qact/core/cpu/binned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/tiles.h"

namespace qact::core::cpu {

// Calls run(Real{}) with the type that a tensor's values are computed in.
template <class Run>
void with_real(DType dtype, const Run& run) {
  if (dtype == DType::f64) {
    run(double{});
  } else {
    run(float{});
  }
}

// body(begin, end) over the groups of channels; threads get enough values each.
template <class Body>
void for_each_group(const TilePlan& plan, const Execution& execution, const Body& body) {
  constexpr int64_t kValuesPerThread = 32768;
  const int64_t values = std::max<int64_t>(1, plan.shape.context_size() * plan.group);
  execution.run(plan.groups, std::max<int64_t>(1, kValuesPerThread / values), body);
}

// Some channels of a group.
struct ChannelRange {
  int64_t begin, end;
};

// visit(tile, size, g) for every tile and each of some channels of a group,
template <class Visit>
void for_each_tile(const TilePlan& plan, const ChannelRange& channels, const Visit& visit) {
  for (int64_t tile = 0; tile < plan.tiles; ++tile) {
    const int64_t size = plan.size(tile);
    for (int64_t g = channels.begin; g < channels.end; ++g) visit(tile, size, g);
  }
}

// or of all.
template <class Visit>
void for_each_tile(const TilePlan& plan, int64_t group, const Visit& visit) {
  for_each_tile(plan, ChannelRange{0, plan.channels_of(group)}, visit);
}

// The channels that take every step together: a group's tile is packed for all of them, but
// where all tiles are kept, one channel at a time keeps its tables in the cache.
inline int64_t channels_at_once(const TilePlan& plan) { return plan.keeps ? 1 : plan.group; }

template <class Real>
EachStrip<Real> strips_of(Strips<Real>& x, const TilePlan& plan, int64_t group, int64_t g) {
  return [&x, &plan, group, g](const std::function<void(const Real*, int64_t)>& kernel) {
    for (int64_t tile = 0; tile < plan.tiles; ++tile) {
      kernel(x.load(group, tile, g), plan.size(tile));
    }
  };
}

template <class Real>
void start_moments(Moments<Real>& state, Real shift) {
  state.shift = shift;
  for (int l = 0; l < kLanes<Real>; ++l) {
    state.sum[l] = state.square[l] = 0;
    state.low[l] = std::numeric_limits<Real>::infinity();
    state.high[l] = -std::numeric_limits<Real>::infinity();
  }
}

template <class Real>
Summary<Real> finish_moments(const Moments<Real>& state, int64_t n, bool& imprecise) {
  double sum = 0, square = 0;
  Summary<Real> out;
  out.n = n;
  out.low = state.low[0];
  out.high = state.high[0];
  for (int l = 0; l < kLanes<Real>; ++l) {
    sum += state.sum[l];
    square += state.square[l];
    out.low = std::min(out.low, state.low[l]);
    out.high = std::max(out.high, state.high[l]);
  }
  const double mean = sum / static_cast<double>(n);
  out.mean = static_cast<double>(state.shift) + mean;
  const double second = square / static_cast<double>(n);
  out.variance = std::max(0.0, second - mean * mean);
  constexpr double kTooFar = 0.01;  // of the second moment must remain
  imprecise = out.variance < kTooFar * second;
  return out;
}

template <class Real>
void summarise(const TensorKernels<Real>& kernels, const TilePlan& plan, Strips<Real>& x,
               int64_t group, std::vector<Summary<Real>>& summaries) {
  const int64_t channels = plan.channels_of(group), n = plan.shape.context_size();
  std::vector<Moments<Real>> state(channels);
  for (int64_t g = 0; g < channels; ++g) start_moments(state[g], x.load(group, 0, g)[0]);
  for_each_tile(plan, group, [&](int64_t tile, int64_t size, int64_t g) {
    kernels.moments(x.load(group, tile, g), size, state[g]);
  });
  summaries.resize(channels);
  for (int64_t g = 0; g < channels; ++g) {
    bool imprecise = false;
    summaries[g] = finish_moments(state[g], n, imprecise);
    if (!imprecise || !summaries[g].finite()) continue;
    start_moments(state[g], static_cast<Real>(summaries[g].mean));
    for (int64_t tile = 0; tile < plan.tiles; ++tile) {
      kernels.moments(x.load(group, tile, g), plan.size(tile), state[g]);
    }
    summaries[g] = finish_moments(state[g], n, imprecise);
  }
}

// visit(i, level) for the exceptions among a strip's values, i counted from its start.
template <class Visit>
void for_each_exception(const std::vector<Exception>& all, int64_t start, int64_t size,
                        const Visit& visit) {
  auto at = std::lower_bound(all.begin(), all.end(), start,
                             [](const Exception& e, int64_t from) { return e.position < from; });
  for (; at != all.end() && at->position < start + size; ++at)
    visit(at->position - start, at->level);
}

// Counts those of some channels that were given a plan with bins; `bins` starts with the first.
template <class Real>
void count_bins(const TensorKernels<Real>& kernels, const TableKernels& tables,
                const TilePlan& plan, Strips<Real>& x, int64_t group, const ChannelRange& channels,
                std::vector<BinnedChannel<Real>>& bins) {
  bool any = false;
  for (int64_t g = channels.begin; g < channels.end; ++g) {
    Histogram<Real>& histogram = bins[g - channels.begin].bins;
    histogram.clear(plan.shape.context_size());
    any |= histogram.plan.bins > 0;
  }
  if (!any) return;
  for_each_tile(plan, channels, [&](int64_t tile, int64_t size, int64_t g) {
    Histogram<Real>& histogram = bins[g - channels.begin].bins;
    if (histogram.plan.bins == 0) return;
    Ahead next = x.ahead(group + 1, tile, g, /*tensors=*/3);
    histogram.add(kernels, tables, x.load(group, tile, g), size, next);
  });
}

}  // namespace qact::core::cpu
