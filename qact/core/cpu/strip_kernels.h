// Strips of values: moved, summed, mapped; see TensorKernels in kernels.h. Included once per SIMD
// level.
#pragma once

#include <type_traits>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// Vectors per block: float sums run this long before they are added to doubles.
constexpr int kBlock = 32;

// Values for which a line of another tensor is prefetched.
constexpr int64_t kPerLine = 16;

template <bool kWrite>
inline void prefetch_line(Prefetch& next) {
  __builtin_prefetch(next.at, kWrite, 2);
  next.at += next.step;
  if (--next.left > 0) return;
  next.left = next.lines;
  if (--next.runs > 0) {
    next.at += next.skip;
  } else {
    next.at -= next.step;
    next.step = 0;
  }
}

template <class Real>
inline void widen(double* lanes, const Vec<Real>& v) {
  Real part[kLanes<Real>];
  store(part, v);
  for (int l = 0; l < kLanes<Real>; ++l) lanes[l] += (double)part[l];
}

// Runs of one image lie together, the next image's far away, where no hardware looks ahead. So
// later ones come to the second cache in time.
constexpr int64_t kImagesAhead = 12;

template <bool kWrite, class Real, class Size>
inline void prefetch_run(const Real* run, Size size) {
  for (int64_t i = 0; i < size; i += kLanes<Real>) __builtin_prefetch(run + i, kWrite, 2);
}

// visit(size, run, strip, channel) for every run, image by image: where it starts in the
// tensor and in the strips. A size of one vector is passed as a constant.
template <bool kWrite, class Value, class Visit>
inline void for_each_run(Value* tensor, const RunBlock& shared_runs, const Visit& visit) {
  constexpr int64_t kVector = sizeof(Value) == 8 ? 8 : 16;
  const RunBlock runs = shared_runs;
  const auto all_runs = [&](auto size) {
    for (int64_t i = 0; i < runs.images; ++i) {
      const int64_t ahead = i + kImagesAhead < runs.images ? kImagesAhead * runs.image_stride : 0;
      Value* run = tensor + i * runs.image_stride;
      int64_t strip = i * size;
      for (int64_t c = 0; c < runs.channels; ++c) {
        prefetch_run<kWrite>(run + ahead, size);
        visit(size, run, strip, c);
        run += runs.channel_stride;
        strip += runs.pitch;
      }
    }
  };
  if (runs.size == kVector) {
    all_runs(std::integral_constant<int64_t, kVector>{});
  } else {
    all_runs(runs.size);
  }
}

// make(channel)(run, strip, size) for every run, channel by channel, so that what make() loads
// stays in registers.
template <class Value, class Make>
inline void for_each_channel_run(Value* tensor, const RunBlock& shared_runs, const Make& make) {
  const RunBlock runs = shared_runs;
  for (int64_t c = 0; c < runs.channels; ++c) {
    const auto visit = make(c);
    Value* run = tensor + c * runs.channel_stride;
    int64_t strip = c * runs.pitch;
    for (int64_t i = 0; i < runs.images; ++i) {
      const int64_t ahead = i + kImagesAhead < runs.images ? kImagesAhead * runs.image_stride : 0;
      prefetch_run<true>(run + ahead, runs.size);
      visit(run, strip, runs.size);
      run += runs.image_stride;
      strip += runs.size;
    }
  }
}

// visit(images, runs, strip, channel) for the runs of two images at a time, or of a last one. A
// channel's codes of both lie side by side.
template <class Value, class Visit>
inline void for_each_two_runs(Value* tensor, const RunBlock& shared_runs, const Visit& visit) {
  const RunBlock runs = shared_runs;
  for (int64_t i = 0; i < runs.images; i += 2) {
    const bool both = i + 1 < runs.images;
    const int64_t ahead = i + kImagesAhead + 1 < runs.images ? kImagesAhead * runs.image_stride : 0;
    Value* run = tensor + i * runs.image_stride;
    int64_t strip = i * runs.size;
    for (int64_t c = 0; c < runs.channels; ++c) {
      if (ahead > 0) {
        prefetch_run<true>(run + ahead, runs.size);
        prefetch_run<true>(run + ahead + runs.image_stride, runs.size);
      }
      visit(both, run, strip, c);
      run += runs.channel_stride;
      strip += runs.pitch;
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
      if (!QACT_MUTANT("moments_tail")) add(load_some<V>(x + i, (int)(n - i), state.shift));
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
