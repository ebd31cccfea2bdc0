// The fused layer's gradient; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include <type_traits>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// Vectors per block, as kBlock: more, since eight sums are added up after each.
constexpr int kGradBlock = 128;

template <int kChunks, class Real>
inline Vec<Real> density_at(const Vec<Real>& d, const DensityLookup<Real>& table) {
  using V = Vec<Real>;
  const V t = minimum(maximum(d * table.scale + table.offset, V{}), all<V>(table.last));
  const IntVec<Real> at = truncate<Real>(t);
  const IntVec<Real> node = lookup<kChunks>(table.nodes, at);
  if (QACT_MUTANT("density_interpolation")) return to_real<Real>(node & 0xffff);
  return to_real<Real>(node & 0xffff) + to_real<Real>(node >> 16) * (t - to_real<Real>(at));
}

template <int kChunks, bool kKeep, class Real>
void grad_sums_of(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
                  const DensityLookup<Real>& shared_density, GradSums<Real>& state, Real* kept,
                  Ahead& shared_next, Ahead& shared_written) {
  Ahead next = shared_next, written = shared_written;
  const DensityLookup<Real> density = shared_density;
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  // The lanes past the end count for nothing.
  const auto lanes_below = [](int some) {
    Real weight[kN];
    for (int l = 0; l < kN; ++l) weight[l] = l < some ? 1 : 0;
    return load<V>(weight);
  };
  int64_t i = 0;
  while (i < n) {
    V dy_sum{}, dyk{}, fdy{}, fdyd{}, f_sum{}, fk{}, fd_sum{}, fkd{};
    const auto add = [&](const V& g, const V& d, const I& level_lanes, const V& f) {
      const V k = to_real<Real>(level_lanes);
      const V fg = f * g, fd = f * d;
      dy_sum += g;
      dyk += g * k;
      fdy += fg;
      fdyd += fg * d;
      f_sum += f;
      fk += f * k;
      fd_sum += fd;
      fkd += fd * k;
    };
    for (int k = 0; k < kGradBlock && i + kN <= n; ++k, i += kN) {
      ask<true>(written);
      ask<false>(next);
      const V d = load<V>(x + i) - density.centre, f = density_at<kChunks, Real>(d, density);
      if constexpr (kKeep) store(kept + i, f);
      add(load<V>(dy + i), d, load_bytes<I>(level + i), f);
    }
    if (n - i > 0 && n - i < kN) {
      const int some = (int)(n - i);
      uint8_t bytes[kN] = {};
      std::memcpy(bytes, level + i, some);
      const V d = load_some<V>(x + i, some, density.centre) - density.centre;
      const V f = density_at<kChunks, Real>(d, density) * lanes_below(some);
      if constexpr (kKeep) store_some(kept + i, f, some);
      if (!QACT_MUTANT("grad_sums_tail"))
        add(load_some<V>(dy + i, some, (Real)0), d, load_bytes<I>(bytes), f);
      i = n;
    }
    widen<Real>(state.lane[kDy], dy_sum);
    widen<Real>(state.lane[kDyK], dyk);
    widen<Real>(state.lane[kFDy], fdy);
    widen<Real>(state.lane[kFDyD], fdyd);
    widen<Real>(state.lane[kF], f_sum);
    widen<Real>(state.lane[kFK], fk);
    widen<Real>(state.lane[kFD], fd_sum);
    widen<Real>(state.lane[kFKD], fkd);
  }
  shared_written = written;
  shared_next = next;
}

template <class Real>
inline Vec<Real> grad_of(const Vec<Real>& f, const Vec<Real>& dy, const Vec<Real>& d,
                         const IntVec<Real>& level, const GradMap<Real>& map) {
  const Vec<Real> inner = dy * map.dy_scale + to_real<Real>(level) * map.k_scale + map.shift;
  return f * inner + (d * map.d_scale + map.d_shift);
}

template <int kChunks, class Real>
void grad_apply_of(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
                   const DensityLookup<Real>& shared_density, const GradMap<Real>& shared_map,
                   Real* dx, Ahead& shared_next) {
  Ahead next = shared_next;
  const GradMap<Real> map = shared_map;
  const DensityLookup<Real> density = shared_density;
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  const auto grad = [&](const V& g, const V& v, const I& level_lanes) -> V {
    const V d = v - map.centre;
    return grad_of<Real>(density_at<kChunks, Real>(d, density), g, d, level_lanes, map);
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

// run(chunks) with the number of 32-node chunks that a table takes, as a constant.
template <class Real, class Run>
inline void with_chunks(const DensityLookup<Real>& density, const Run& run) {
  if (density.last < 64) {
    run(std::integral_constant<int, 2>{});
  } else if (density.last < 128) {
    run(std::integral_constant<int, 4>{});
  } else {
    run(std::integral_constant<int, 8>{});
  }
}

template <class Real>
void grad_sums(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
               const DensityLookup<Real>& density, GradSums<Real>& state, Real* f, Ahead& next,
               Ahead& written) {
  with_chunks(density, [&](auto chunks) {
    if (f) {
      grad_sums_of<chunks.value, true>(dy, x, level, n, density, state, f, next, written);
    } else {
      grad_sums_of<chunks.value, false>(dy, x, level, n, density, state, f, next, written);
    }
  });
}

template <class Real>
void grad_apply(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
                const DensityLookup<Real>& density, const GradMap<Real>& map, Real* dx,
                Ahead& next) {
  with_chunks(density, [&](auto chunks) {
    grad_apply_of<chunks.value>(dy, x, level, n, density, map, dx, next);
  });
}

template <class Real>
void grad_output(const Real* f, const Real* dy, const Real* x, const uint8_t* level,
                 int64_t level_pitch, const RunBlock& runs, const GradMap<Real>* maps, Real* dx,
                 Ahead next) {
  using V = Vec<Real>;
  using I = IntVec<Real>;
  constexpr int kN = kLanes<Real>;
  for_each_run<true>(dx, runs, [&](auto size, Real* run, int64_t strip, int64_t c) {
    const GradMap<Real> map = maps[c];
    const uint8_t* bytes = level + strip + c * (level_pitch - runs.pitch);
    int64_t i = 0;
    for (; i + kN <= size; i += kN, strip += kN) {
      ask<false>(next);
      store(run + i, grad_of<Real>(load<V>(f + strip), load<V>(dy + strip),
                                   load<V>(x + strip) - map.centre, load_bytes<I>(bytes + i), map));
    }
    for (; i < size; ++i, ++strip) {
      const Real inner = dy[strip] * map.dy_scale + (Real)bytes[i] * map.k_scale + map.shift;
      run[i] = f[strip] * inner + ((x[strip] - map.centre) * map.d_scale + map.d_shift);
    }
  });
}

}  // namespace
}  // namespace qact::core::cpu
