// The bodies of TensorKernels; see kernels.h. Included once per SIMD level.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"

namespace qact::core::cpu {
namespace {

// Vectors per block: float sums run this long before they are added to doubles.
constexpr int kBlock = 32;

template <bool kWrite>
inline void ask(Ahead& ahead) {
  __builtin_prefetch(ahead.at, kWrite, 2);
  ahead.at += ahead.step;
  if (--ahead.left == 0) {
    ahead.at += ahead.skip;
    ahead.left = ahead.lines;
  }
}

template <class Real>
inline void widen(double* lanes, const Vec<Real>& v) {
  Real part[kLanes<Real>];
  store(part, v);
  for (int l = 0; l < kLanes<Real>; ++l) lanes[l] += (double)part[l];
}

template <class Real>
inline void copy_run(const Real* from, int64_t n, Real* to) {
  constexpr int kN = kLanes<Real>;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store(to + i, load<Vec<Real>>(from + i));
  for (; i < n; ++i) to[i] = from[i];
}

template <class Real>
void pack(const Real* from, const RunBlock& shared_runs, Real* to) {
  const RunBlock runs = shared_runs;
  for (int64_t i = 0; i < runs.images; ++i) {
    for (int64_t c = 0; c < runs.channels; ++c) {
      copy_run(from + i * runs.image_stride + c * runs.channel_stride, runs.size,
               to + c * runs.pitch + i * runs.size);
    }
  }
}

template <class Real>
void unpack(const Real* from, const RunBlock& shared_runs, Real* to) {
  const RunBlock runs = shared_runs;
  for (int64_t i = 0; i < runs.images; ++i) {
    for (int64_t c = 0; c < runs.channels; ++c) {
      copy_run(from + c * runs.pitch + i * runs.size, runs.size,
               to + i * runs.image_stride + c * runs.channel_stride);
    }
  }
}

template <class Real>
void moments(const Real* x, int64_t n, Moments<Real>& state) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const V shift = all<V>(state.shift);
  V low = load<V>(state.low), high = load<V>(state.high);
  int64_t i = 0;
  while (i < n) {
    V sum{}, square{};
    const auto add = [&](const V& v) {
      const V d = v - shift;
      sum += d;
      square += d * d;
      low = minimum(v, low);
      high = maximum(v, high);
    };
    for (int k = 0; k < kBlock && i + kN <= n; ++k, i += kN) add(load<V>(x + i));
    if (n - i > 0 && n - i < kN) {
      add(load_some<V>(x + i, (int)(n - i), state.shift));
      i = n;
    }
    widen<Real>(state.sum, sum);
    widen<Real>(state.square, square);
  }
  store(state.low, low);
  store(state.high, high);
}

template <class Real>
struct Binned {
  Vec<Real> t;
  IntVec<Real> bin;
};

template <class Real>
inline Binned<Real> bin_of(const Vec<Real>& x, const BinMap<Real>& map) {
  using V = Vec<Real>;
  V t = (x - map.origin) * map.scale;
  t = minimum(maximum(t, all<V>(map.first)), all<V>(map.last));
  return {t, floor<Real>(t) + map.offset};
}

template <class Real>
void histogram(const Real* x, int64_t n, const BinMap<Real>& shared_map, uint32_t* even,
               uint32_t* odd, Ahead& shared_next) {
  Ahead next = shared_next;
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  constexpr int64_t kAhead = 512;  // bins found before they are counted, or the loads stall
  const BinMap<Real> map = shared_map;
  int32_t bin[kAhead];
  for (int64_t from = 0; from < n; from += kAhead) {
    const int64_t size = n - from < kAhead ? n - from : kAhead;
    int64_t i = 0;
    for (; i + kN <= size; i += kN) store(bin + i, bin_of<Real>(load<V>(x + from + i), map).bin);
    if (i < size) {
      const V rest = load_some<V>(x + from + i, (int)(size - i), map.origin);
      store_some(bin + i, bin_of<Real>(rest, map).bin, (int)(size - i));
    }
    for (i = 0; i + kN <= size; i += kN) {
      ask<false>(next);
      for (int l = 0; l < kN; l += 2) {
        ++even[bin[i + l]];
        ++odd[bin[i + l + 1]];
      }
    }
    for (; i < size; ++i) ++even[bin[i]];
  }
  shared_next = next;
}

// Calls visit(lane, t, mark) for the values among x[0..some) that lie in marked bins.
template <class Real, class Visit>
inline void for_each_marked(const Real* x, int some, const BinMap<Real>& map,
                            const int32_t* marks, const Visit& visit) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const V v = some == kN ? load<V>(x) : load_some<V>(x, some, map.origin);
  const Binned<Real> binned = bin_of<Real>(v, map);
  const IntVec<Real> mark = gather(marks, binned.bin);
  if (!any_not_negative(mark)) return;
  Real t[kN];
  int32_t marked[kN];
  store(t, binned.t);
  store(marked, mark);
  for (int l = 0; l < some; ++l) {
    if (marked[l] >= 0) visit(l, t[l], marked[l]);
  }
}

template <class Real>
void marked_range(const Real* x, int64_t n, const BinMap<Real>& map, const int32_t* marks,
                  Real* low, Real* high) {
  constexpr int kN = kLanes<Real>;
  for (int64_t i = 0; i < n; i += kN) {
    for_each_marked(x + i, n - i < kN ? (int)(n - i) : kN, map, marks,
                    [&](int, Real t, int32_t mark) {
                      if (t < low[mark]) low[mark] = t;
                      if (t > high[mark]) high[mark] = t;
                    });
  }
}

template <class Real>
int64_t marked_collect(const Real* x, int64_t n, const BinMap<Real>& map, const int32_t* marks,
                       int32_t* place, Real* t_out, int32_t* mark_out) {
  constexpr int kN = kLanes<Real>;
  int64_t found = 0;
  for (int64_t i = 0; i < n; i += kN) {
    for_each_marked(x + i, n - i < kN ? (int)(n - i) : kN, map, marks,
                    [&](int lane, Real t, int32_t mark) {
                      place[found] = (int32_t)i + lane;
                      t_out[found] = t;
                      mark_out[found++] = mark;
                    });
  }
  return found;
}

template <class Real>
inline void store_layer(const IntVec<Real>& level, const LayerOutput<Real>& out, int64_t i) {
  store(out.y + i, to_real<Real>(level) * out.scale + out.shift);
  store_bytes(out.level + i, level);
}

template <class Real>
inline void store_layer_some(const IntVec<Real>& level, const LayerOutput<Real>& out, int64_t i,
                             int some) {
  uint8_t bytes[kLanes<Real>];
  store_some(out.y + i, to_real<Real>(level) * out.scale + out.shift, some);
  store_bytes(bytes, level);
  std::memcpy(out.level + i, bytes, some);
}

template <class Real>
void layer_bins(const Real* x, int64_t n, const BinMap<Real>& shared_map, const int32_t* levels,
                const LayerOutput<Real>& shared_out, Ahead& shared_written) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  const BinMap<Real> map = shared_map;
  const LayerOutput<Real> out = shared_out;
  Ahead written = shared_written;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    ask<true>(written);
    store_layer<Real>(gather(levels, bin_of<Real>(load<V>(x + i), map).bin), out, i);
  }
  if (i < n) {
    const V rest = load_some<V>(x + i, (int)(n - i), map.origin);
    store_layer_some<Real>(gather(levels, bin_of<Real>(rest, map).bin), out, i, (int)(n - i));
  }
  shared_written = written;
}

template <class Real>
void plain_bins(const Real* x, int64_t n, const BinMap<Real>& map, const int32_t* levels,
                int32_t* level, int32_t* bin) {
  using V = Vec<Real>;
  constexpr int kN = kLanes<Real>;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    const IntVec<Real> b = bin_of<Real>(load<V>(x + i), map).bin;
    store(level + i, gather(levels, b));
    store(bin + i, b);
  }
  if (i < n) {
    const int some = (int)(n - i);
    const IntVec<Real> b = bin_of<Real>(load_some<V>(x + i, some, map.origin), map).bin;
    store_some(level + i, gather(levels, b), some);
    store_some(bin + i, b, some);
  }
}

template <class Real>
void affine(const Real* x, int64_t n, const Affine<Real>& map, Real* z) {
  for (int64_t i = 0; i < n; ++i) z[i] = (x[i] - map.centre) * map.scale + map.shift;
}

template <class Real>
void search(const Real* z, int64_t n, const Real* thresholds, int32_t count, int32_t* level) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  int32_t size = 1;
  while (size - 1 < count) size *= 2;
  const I counts = all<I>(count);
  const auto find = [&](const V& v) -> I {
    I low{};
    for (int32_t step = size / 2; step > 0; step /= 2) {
      low += less_equal<Real>(gather(thresholds, low + (step - 1)), v) & step;
    }
    return minimum(low, counts);
  };
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store(level + i, find(load<V>(z + i)));
  if (i < n) {
    store_some(level + i, find(load_some<V>(z + i, (int)(n - i), (Real)0)), (int)(n - i));
  }
}

template <class Real>
void ranks(const Real* z, int32_t n, int32_t* rank) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  for (int32_t i = 0; i < n; i += kN) {
    const int some = n - i < kN ? n - i : kN;
    const V own = load_some<V>(z + i, some, (Real)0);
    I count{};
    for (int32_t j = 0; j < n; ++j) count = count - less_equal<Real>(all<V>(z[j]), own);
    store_some(rank + i, count, some);
  }
}

template <class Real>
void layer_levels(const int32_t* level, int64_t n, const LayerOutput<Real>& out) {
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  int64_t i = 0;
  for (; i + kN <= n; i += kN) store_layer<Real>(load<I>(level + i), out, i);
  if (i < n) {
    store_layer_some<Real>(load_some<I>(level + i, (int)(n - i), 0), out, i, (int)(n - i));
  }
}

template <class Real>
void grad_sums(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
               const Real* density, Real centre, GradSums<Real>& state, Ahead& shared_next,
               Ahead& shared_written) {
  Ahead next = shared_next, written = shared_written;
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  int64_t i = 0;
  while (i < n) {
    V sum[kGradSums] = {};
    const auto add = [&](const V& g, const V& d, const I& level_lanes) {
      const V f = gather(density, level_lanes);
      const V k = to_real<Real>(level_lanes);
      const V fg = f * g, fd = f * d;
      sum[kDy] += g;
      sum[kDyK] += g * k;
      sum[kFDy] += fg;
      sum[kFDyD] += fg * d;
      sum[kFD] += fd;
      sum[kFKD] += fd * k;
    };
    for (int k = 0; k < kBlock && i + kN <= n; ++k, i += kN) {
      ask<true>(written);
      ask<false>(next);
      add(load<V>(dy + i), load<V>(x + i) - centre, load_bytes<I>(level + i));
    }
    if (n - i > 0 && n - i < kN) {
      const int some = (int)(n - i);
      uint8_t bytes[kN] = {};
      std::memcpy(bytes, level + i, some);
      add(load_some<V>(dy + i, some, (Real)0), load_some<V>(x + i, some, centre) - centre,
          load_bytes<I>(bytes));
      i = n;
    }
    for (int s = 0; s < kGradSums; ++s) widen<Real>(state.lane[s], sum[s]);
  }
  shared_written = written;
  shared_next = next;
}

template <class Real>
void grad_apply(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
                const Real* density, const GradMap<Real>& shared_map, Real* dx,
                Ahead& shared_next) {
  Ahead next = shared_next;
  const GradMap<Real> map = shared_map;
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  const auto grad = [&](const V& g, const V& v, const I& level_lanes) -> V {
    const V f = gather(density, level_lanes);
    const V inner = g * map.dy_scale + to_real<Real>(level_lanes) * map.k_scale + map.shift;
    return f * inner + ((v - map.centre) * map.d_scale + map.d_shift);
  };
  int64_t i = 0;
  for (; i + kN <= n; i += kN) {
    ask<false>(next);
    store(dx + i, grad(load<V>(dy + i), load<V>(x + i), load_bytes<I>(level + i)));
  }
  if (i < n) {
    const int some = (int)(n - i);
    uint8_t bytes[kN] = {};
    std::memcpy(bytes, level + i, some);
    store_some(dx + i,
               grad(load_some<V>(dy + i, some, (Real)0), load_some<V>(x + i, some, (Real)0),
                    load_bytes<I>(bytes)),
               some);
  }
  shared_next = next;
}

}  // namespace
}  // namespace qact::core::cpu
