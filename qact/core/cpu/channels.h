// What the drivers share: groups of channels in parallel, and the passes over one group.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>

#include "qact/core/cpu/binned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/tiles.h"
#include "qact/core/mutant.h"

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
  if (plan.groups == 1) return body(0, 1);  // whose blocks may be shared
  const int64_t values = std::max<int64_t>(1, plan.shape.context_size() * plan.group);
  execution.run(plan.groups, std::max<int64_t>(1, kValuesPerThread / values), body);
}

// z = scale * x + shift of a channel.
template <class Real>
Affine<Real> affine_of(const ChannelVector& scale, const ChannelVector& shift, int64_t c) {
  return {Real{0}, static_cast<Real>(scale.at(c, 1.0)), static_cast<Real>(shift.at(c, 0.0))};
}

// Some channels of a group.
struct ChannelRange {
  int64_t begin, end;
};

struct TileRange {
  int64_t begin, end;
};

// visit(tile, size, g) for some tiles and each of some channels of a group,
template <class Visit>
void for_each_tile(const TilePlan& plan, const TileRange& tiles, const ChannelRange& channels,
                   const Visit& visit) {
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t size = plan.size(tile);
    for (int64_t g = channels.begin; g < channels.end; ++g) visit(tile, size, g);
  }
}

// or for all.
template <class Visit>
void for_each_tile(const TilePlan& plan, int64_t group, const Visit& visit) {
  for_each_tile(plan, {0, plan.tiles}, {0, plan.channels_of(group)}, visit);
}

// work(block, tiles, strips...) for every block of a group's tiles. Where there are several, each
// thread gets strips of its own.
template <class Work, class... Strips>
void for_each_block(const TilePlan& plan, const Execution& execution, const Work& work,
                    Strips&... own) {
  if (plan.blocks == 1) return work(0, TileRange{0, plan.tiles}, own...);
  execution.run(plan.blocks, 1, [&](int64_t begin, int64_t end) {
    const auto run = [&](auto... strips) {
      for (int64_t block = begin; block < end; ++block) {
        work(block, TileRange{plan.first_tile(block), plan.first_tile(block + 1)}, strips...);
      }
    };
    run(own.another()...);
  });
}

// The channels that take every step together: a group's tile is packed for all of them, but
// where all tiles are kept, one channel at a time keeps its tables in the cache.
inline int64_t channels_at_once(const TilePlan& plan) { return plan.packs_once() ? 1 : plan.group; }

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
void add_moments(Moments<Real>& state, const Moments<Real>& more) {
  for (int l = 0; l < kLanes<Real>; ++l) {
    state.sum[l] += more.sum[l];
    state.square[l] += QACT_MUTANT("moments_of_other_block") ? 0 : more.square[l];
    state.low[l] = std::min(state.low[l], more.low[l]);
    state.high[l] = std::max(state.high[l], more.high[l]);
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
  const double second = square / static_cast<double>(n - QACT_MUTANT("variance_n_minus_1"));
  out.variance = std::max(0.0, second - mean * mean);
  constexpr double kTooFar = 0.01;  // of the second moment must remain
  imprecise = out.variance < kTooFar * second && !QACT_MUTANT("moments_second_look");
  return out;
}

// The second look at a channel whose squares are beyond Real: slowly, in double. Every value adds
// its share, so that nothing overflows but the variance itself.
template <class Real>
void summarise_widely(const TilePlan& plan, Strips<Real>& x, int64_t group, int64_t g,
                      Summary<Real>& summary) {
  const double n = static_cast<double>(summary.n), root = std::sqrt(n);
  const auto add_up = [&](const auto& share) {
    double sum = 0;
    for (int64_t tile = 0; tile < plan.tiles; ++tile) {
      const Real* strip = x.load(group, tile, g);
      for (int64_t i = 0; i < plan.size(tile); ++i) sum += share(static_cast<double>(strip[i]));
    }
    return sum;
  };
  summary.mean = add_up([&](double v) { return v / n; });
  if (!std::isfinite(summary.mean)) return;  // it holds a NaN
  summary.variance = add_up([&](double v) {
    const double d = (v - summary.mean) / root;
    return d * d;
  });
}

template <class Real>
void summarise(const TensorKernels<Real>& kernels, const TilePlan& plan, Strips<Real>& x,
               int64_t group, std::vector<Summary<Real>>& summaries,
               const Execution& execution = {}) {
  const int64_t channels = plan.channels_of(group), n = plan.shape.context_size();
  std::vector<Moments<Real>> state(plan.blocks * channels);
  for (int64_t i = 0; i < plan.blocks * channels; ++i) {
    start_moments(state[i], x.load(group, 0, i % channels)[0]);
  }
  const auto add = [&](int64_t block, const TileRange& tiles, Strips<Real>& strips) {
    for_each_tile(plan, tiles, {0, channels}, [&](int64_t tile, int64_t size, int64_t g) {
      kernels.moments(strips.load(group, tile, g), size, state[block * channels + g]);
    });
  };
  for_each_block(plan, execution, add, x);
  summaries.resize(channels);
  for (int64_t g = 0; g < channels; ++g) {
    for (int64_t b = 1; b < plan.blocks; ++b) add_moments(state[g], state[b * channels + g]);
    bool imprecise = false;
    summaries[g] = finish_moments(state[g], n, imprecise);
    if (!summaries[g].finite()) {
      if (std::isfinite(summaries[g].high - summaries[g].low)) {
        summarise_widely(plan, x, group, g, summaries[g]);
      }
      continue;
    }
    if (!imprecise) continue;
    start_moments(state[g], static_cast<Real>(summaries[g].mean));
    for (int64_t tile = 0; tile < plan.tiles; ++tile) {
      kernels.moments(x.load(group, tile, g), plan.size(tile), state[g]);
    }
    summaries[g] = finish_moments(state[g], n, imprecise);
  }
}

// visit(i, override) for those among a strip's values, i counted from its start.
template <class Visit>
void for_each_override(const std::vector<Override>& all, int64_t start, int64_t size,
                       const Visit& visit) {
  auto at = std::lower_bound(all.begin(), all.end(), start,
                             [](const Override& o, int64_t from) { return o.position < from; });
  for (; at != all.end() && at->position < start + size; ++at) visit(at->position - start, *at);
}

// y from the code of every value: all channels' lie one after the other.
template <class Real>
void write_outputs(const TensorKernels<Real>& kernels, const TilePlan& plan, int64_t group,
                   const TileRange& tiles, const uint8_t* code,
                   const std::vector<OutputTable<Real>>& outputs, Strips<Real>& y) {
  const int64_t n = plan.shape.context_size();
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    y.store_runs(group, tile, [&](void* to, RunBlock runs) {
      runs.pitch = n;
      kernels.layer_output(code + plan.first_channel(group) * n + plan.start(tile), runs,
                           outputs.data(), y.written(), to);
    });
  }
}

// Counts those of some channels that were given a plan with bins; `bins` starts with the first.
template <class Real>
void count_bins(const TensorKernels<Real>& kernels, const TilePlan& plan, Strips<Real>& x,
                int64_t group, const ChannelRange& channels, std::vector<BinnedChannel<Real>>& bins,
                const Execution& execution = {}) {
  const int64_t n = plan.shape.context_size();
  // Where the group's copy stays near, its bins do.
  const bool keeps = plan.packs_once() && plan.group * n * sizeof(Real) <= TilePlan::kCache;
  bool any = false;
  for (int64_t g = channels.begin; g < channels.end; ++g) {
    Histogram<Real>& histogram = bins[g - channels.begin].bins;
    histogram.clear(n, keeps);
    any |= histogram.plan.bins > 0;
  }
  if (!any) return;
  const auto count = [&](const TileRange& tiles, Strips<Real>& strips, const auto& histogram_of) {
    for_each_tile(plan, tiles, channels, [&](int64_t tile, int64_t size, int64_t g) {
      Histogram<Real>& histogram = histogram_of(g - channels.begin);
      if (histogram.plan.bins == 0) return;
      Prefetch next = strips.prefetch(group + 1, tile, g);
      histogram.add(kernels, strips.load(group, tile, g), size, next);
    });
  };
  const auto shared = [&](int64_t i) -> Histogram<Real>& { return bins[i].bins; };
  if (plan.blocks == 1) return count({0, plan.tiles}, x, shared);
  std::mutex adding;
  const auto count_block = [&](int64_t, const TileRange& tiles, Strips<Real>& strips) {
    std::vector<Histogram<Real>> own(channels.end - channels.begin);
    for (size_t i = 0; i < own.size(); ++i) {
      own[i].plan = shared(i).plan;
      own[i].clear(n);
    }
    count(tiles, strips, [&](int64_t i) -> Histogram<Real>& { return own[i]; });
    const std::lock_guard lock(adding);
    for (size_t i = 0; i < own.size(); ++i) shared(i).add(own[i]);
  };
  for_each_block(plan, execution, count_block, x);
}

// Solves those of some channels that were counted. All that have heavy bins are read once more.
template <class Real>
void solve_bins(const TensorKernels<Real>& kernels, const TableKernels& tables,
                const Quantile& quantile, const TilePlan& plan, Strips<Real>& x, int64_t group,
                const ChannelRange& channels, std::vector<BinnedChannel<Real>>& bins) {
  const auto heavy = [&](int64_t g) {
    const BinnedChannel<Real>& channel = bins[g - channels.begin];
    return channel.bins.plan.bins > 0 && channel.heavy();
  };
  bool any = false;
  for (int64_t g = channels.begin; g < channels.end; ++g) {
    BinnedChannel<Real>& channel = bins[g - channels.begin];
    if (channel.bins.plan.bins > 0) any |= channel.solve(kernels, tables, quantile);
  }
  if (!any) return;
  for_each_tile(plan, {0, plan.tiles}, channels, [&](int64_t tile, int64_t size, int64_t g) {
    if (!heavy(g)) return;
    bins[g - channels.begin].collect(kernels, tables, quantile, x.load(group, tile, g), size);
  });
  for (int64_t g = channels.begin; g < channels.end; ++g) {
    if (heavy(g)) bins[g - channels.begin].resolve_heavy_bins(kernels, tables, quantile);
  }
}

}  // namespace qact::core::cpu
