// Strips of values: moved, summed, mapped; see TensorKernels in kernels.h. Included once per SIMD
// level.
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

// Runs of one image lie together, the next image's far away, where no hardware looks ahead.
constexpr int64_t kImagesAhead = 6;

template <bool kWrite, class Real>
inline void ask_ahead(const Real* run, int64_t size) {
  for (int64_t i = 0; i < size; i += kLanes<Real>) __builtin_prefetch(run + i, kWrite, 3);
}

template <class Real>
void pack(const Real* from, const RunBlock& shared_runs, Real* to) {
  const RunBlock runs = shared_runs;
  for (int64_t i = 0; i < runs.images; ++i) {
    const int64_t ahead = i + kImagesAhead < runs.images ? kImagesAhead * runs.image_stride : 0;
    for (int64_t c = 0; c < runs.channels; ++c) {
      const Real* run = from + i * runs.image_stride + c * runs.channel_stride;
      ask_ahead<false>(run + ahead, runs.size);
      copy_run(run, runs.size, to + c * runs.pitch + i * runs.size);
    }
  }
}

template <class Real>
void unpack(const Real* from, const RunBlock& shared_runs, Real* to) {
  const RunBlock runs = shared_runs;
  for (int64_t i = 0; i < runs.images; ++i) {
    const int64_t ahead = i + kImagesAhead < runs.images ? kImagesAhead * runs.image_stride : 0;
    for (int64_t c = 0; c < runs.channels; ++c) {
      Real* run = to + i * runs.image_stride + c * runs.channel_stride;
      ask_ahead<true>(run + ahead, runs.size);
      copy_run(from + c * runs.pitch + i * runs.size, runs.size, run);
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
void affine(const Real* x, int64_t n, const Affine<Real>& map, Real* z) {
  for (int64_t i = 0; i < n; ++i) z[i] = (x[i] - map.centre) * map.scale + map.shift;
}

}  // namespace
}  // namespace qact::core::cpu
