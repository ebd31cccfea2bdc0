// CUDA's device functions, as far as the kernels call them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/core/cuda/emulator/grid.h"

using QactPlace = std::source_location;  // of the call: the default of every `at`

inline void __syncthreads(QactPlace at = QactPlace::current()) {
  qact::emulator::here().barrier(qact::emulator::Block::sync, false, at);
}
inline bool __syncthreads_or(bool value, QactPlace at = QactPlace::current()) {
  return qact::emulator::here().barrier(qact::emulator::Block::sync_or, value, at);
}
inline bool __syncthreads_and(bool value, QactPlace at = QactPlace::current()) {
  return qact::emulator::here().barrier(qact::emulator::Block::sync_and, value, at);
}

// The value that another lane of the warp has, once all have come.
template <class Value, class From>
Value qact_from_lane(unsigned mask, Value value, const From& from, const QactPlace& at) {
  static_assert(sizeof(Value) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  const unsigned lane = qact::emulator::here().lane();
  bits = qact::emulator::here().exchange(mask, bits, at)[from(lane)];
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int other, QactPlace at = QactPlace::current()) {
  return qact_from_lane(mask, value, [&](unsigned lane) { return (lane ^ other) % 32; }, at);
}
template <class Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned by, QactPlace at = QactPlace::current()) {
  return qact_from_lane(
      mask, value, [&](unsigned lane) { return lane < by ? lane : lane - by; }, at);
}
template <class Value>
Value __shfl_sync(unsigned mask, Value value, int from, QactPlace at = QactPlace::current()) {
  return qact_from_lane(mask, value, [&](unsigned) { return from % 32; }, at);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, QactPlace at = QactPlace::current()) {
  qact::emulator::here().exchange(mask, 0, at);
}

template <class Merge>
unsigned qact_reduce(unsigned mask, unsigned value, const Merge& merge, const QactPlace& at) {
  const auto& all = qact::emulator::here().exchange(mask, value, at);
  unsigned out = static_cast<unsigned>(all[0]);
  for (int lane = 1; lane < 32; ++lane) out = merge(out, static_cast<unsigned>(all[lane]), lane);
  return out;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value,
                                  QactPlace at = QactPlace::current()) {
  return qact_reduce(mask, value, [](unsigned a, unsigned b, int) { return a + b; }, at);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value,
                                  QactPlace at = QactPlace::current()) {
  return qact_reduce(mask, value, [](unsigned a, unsigned b, int) { return std::min(a, b); }, at);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value,
                                  QactPlace at = QactPlace::current()) {
  return qact_reduce(mask, value, [](unsigned a, unsigned b, int) { return std::max(a, b); }, at);
}
inline unsigned __ballot_sync(unsigned mask, bool value, QactPlace at = QactPlace::current()) {
  return qact_reduce(
      mask, value, [](unsigned a, unsigned b, int lane) { return a | b << lane; }, at);
}

inline unsigned __clusterRelativeBlockRank() { return qact::emulator::here().rank(); }
inline void __cluster_barrier_arrive() { qact::emulator::here().cluster_arrive(); }
inline void __cluster_barrier_wait(QactPlace at = QactPlace::current()) {
  qact::emulator::here().cluster_wait(at);
}
inline void* __cluster_map_shared_rank(const void* own, unsigned rank) {
  return qact::emulator::here().in_block(own, rank);
}
inline void cudaGridDependencySynchronize(QactPlace at = QactPlace::current()) {
  qact::emulator::here().wait_for_grid(at);
}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

template <class Value, class Change>
Value qact_atomic(Value* at, const Change& change) {
  qact::emulator::here().give_way();
  const Value before = *at;
  *at = change(before);
  return before;
}
template <class Value>
Value atomicAdd(Value* at, std::type_identity_t<Value> by) {
  return qact_atomic(at, [by](Value v) { return v + by; });
}
template <class Value>
Value atomicOr(Value* at, std::type_identity_t<Value> bits) {
  return qact_atomic(at, [bits](Value v) { return v | bits; });
}
template <class Value>
Value atomicMin(Value* at, std::type_identity_t<Value> other) {
  return qact_atomic(at, [other](Value v) { return std::min(v, other); });
}
template <class Value>
Value atomicMax(Value* at, std::type_identity_t<Value> other) {
  return qact_atomic(at, [other](Value v) { return std::max(v, other); });
}
template <class Value>
Value __ldg(const Value* at) {
  qact::emulator::here().give_way();
  return *at;
}
template <class Value>
Value __ldcg(const Value* at) {
  return __ldg(at);
}

using std::isfinite, std::isinf, std::isnan;
inline int min(int a, int b) { return std::min(a, b); }
inline int max(int a, int b) { return std::max(a, b); }
inline unsigned min(unsigned a, unsigned b) { return std::min(a, b); }
inline unsigned max(unsigned a, unsigned b) { return std::max(a, b); }

inline uint32_t __float_as_uint(float v) { return std::bit_cast<uint32_t>(v); }
inline float __uint_as_float(uint32_t v) { return std::bit_cast<float>(v); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
inline int __popc(uint32_t v) { return std::popcount(v); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float v) { return std::sqrt(v); }
inline float __expf(float v) { return std::exp(v); }
inline double rsqrt(double v) { return 1 / std::sqrt(v); }
// To the nearest number that there is; NaN to 0.
inline int __float2int_rd(float v) {
  constexpr int kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  const float down = std::floor(v);
  if (!(down == down)) return 0;
  return down <= -0x1p31f ? kLow : down >= 0x1p31f ? kHigh : static_cast<int>(down);
}
