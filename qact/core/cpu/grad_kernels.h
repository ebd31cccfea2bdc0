// The fused layer's gradient; see TensorKernels in kernels.h. Included once per SIMD level.
#pragma once

#include <type_traits>

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"
#include "qact/core/cpu/strip_kernels.h"

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
  return to_real<Real>(node & 0xffff) + to_real<Real>(node >> 16) * (t - to_real<Real>(at));
}

template <int kChunks, class Real>
void grad_sums_of(const Real* dy, const Real* x, const uint8_t* level, int64_t n,
                  const DensityLookup<Real>& shared_density, GradSums<Real>& state,
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
      const V d = load<V>(x + i) - density.centre;
      add(load<V>(dy + i), d, load_bytes<I>(level + i), density_at<kChunks, Real>(d, density));
    }
    if (n - i > 0 && n - i < kN) {
      const int some = (int)(n - i);
      uint8_t bytes[kN] = {};
      std::memcpy(bytes, level + i, some);
      const V d = load_some<V>(x + i, some, density.centre) - density.centre;
      add(load_some<V>(dy + i, some, (Real)0), d, load_bytes<I>(bytes),
          density_at<kChunks, Real>(d, density) * lanes_below(some));
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
    const V d = v - density.centre;
    const V inner = g * map.dy_scale + to_real<Real>(level_lanes) * map.k_scale + map.shift;
    return density_at<kChunks, Real>(d, density) * inner + (d * map.d_scale + map.d_shift);
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
               const DensityLookup<Real>& density, GradSums<Real>& state, Ahead& next,
               Ahead& written) {
  with_chunks(density, [&](auto chunks) {
    grad_sums_of<chunks.value>(dy, x, level, n, density, state, next, written);
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

}  // namespace
}  // namespace qact::core::cpu
