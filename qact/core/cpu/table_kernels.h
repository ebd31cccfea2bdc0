// The bodies of TableKernels; see kernels.h. Included once per SIMD level.
#pragma once

#include "qact/core/context_rows.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"

namespace qact::core::cpu {
namespace {

void cumulate(uint32_t* even, const uint32_t* odd, int32_t bins, int32_t* before) {
  using I = IntVec<float>;
  const int32_t* more = (const int32_t*)odd;
  int32_t* count = (int32_t*)even;
  const bool two = odd != even;
  I total{};  // in every lane
  for (int32_t b = 0; b < bins; b += 16) {
    I c = load<I>(count + b);
    if (two) {
      c = c + load<I>(more + b);
      store(count + b, c);
    }
    const I sums = prefix_sum(c);
    store(before + b, sums - c + total);
    total = total + all_last(sums);
  }
  before[bins] = total.part[0][0];
}

bool bin_levels(const uint32_t* count, const int32_t* before, int32_t bins,
                const BinLevels& shared_rule, int32_t* level) {
  using I = IntVec<float>;
  const BinLevels rule = shared_rule;
  const I caps = all<I>(rule.cap), limit = all<I>(rule.limit);
  I heavy{};
  const auto levels_of = [&](const I& c, const I& m) -> I {
    const I middle = (m + rule.rank) * 2 + c;
    heavy = heavy | (limit - c);  // negative where the count exceeds the limit
    return minimum(truncate<float>(to_real<float>(middle) * rule.gain + rule.base), caps);
  };
  int32_t b = 0;
  for (; b + 16 <= bins; b += 16) {
    store(level + b, levels_of(load<I>((const int32_t*)count + b), load<I>(before + b)));
  }
  if (b < bins) {  // what follows belongs to other levels
    const int some = bins - b;
    const I c = load_some<I>((const int32_t*)count + b, some, 0);
    store_some(level + b, levels_of(c, load_some<I>(before + b, some, 0)), some);
  }
  return any_negative(heavy);
}

int32_t heavier(const uint32_t* count, int32_t bins, int32_t limit, int32_t* found) {
  using I = IntVec<float>;
  const I limits = all<I>(limit);
  int32_t total = 0;
  for (int32_t b = 0; b < bins; b += 16) {
    const int32_t* from = (const int32_t*)count + b;
    const I c = bins - b < 16 ? load_some<I>(from, bins - b, 0) : load<I>(from);
    uint32_t over = negative_lanes(limits - c);
    for (; over; over &= over - 1) found[total++] = b + __builtin_ctz(over);
  }
  return total;
}

void cumulative_at(const int32_t* before, const uint32_t* count, int32_t bins,
                   const float* position, float offset, float scale, int32_t n, int32_t* whole,
                   float* part) {
  using V = Vec<float>;
  using I = IntVec<float>;
  const V end = all<V>((float)bins);
  const auto index = [](int32_t i) {
    float lanes[16];
    for (int l = 0; l < 16; ++l) lanes[l] = (float)(i + l);
    return load<V>(lanes);
  };
  for (int32_t i = 0; i < n; i += 16) {
    const V at = position ? load<V>(position + i) : index(i);
    const V t = minimum(maximum(at * scale + offset, V{}), end);
    if (t.part[0][0] == (float)bins) {  // and so have all that follow
      for (; i < n; i += 16) {
        store(whole + i, all<I>(before[bins]));
        if (part) store(part + i, V{});
      }
      return;
    }
    const I bin = truncate<float>(part ? t : t + 0.5f);
    store(whole + i, gather(before, bin));
    if (!part) continue;
    store(part + i, to_real<float>(gather((const int32_t*)count, bin)) * (t - to_real<float>(bin)));
  }
}

void convolve(const float* in, const float* taps, int32_t taps_count, float scale, float* out,
              int32_t n) {
  using V = Vec<float>;
  for (int32_t i = 0; i < n; i += 16) {
    V sum{};
    for (int32_t k = 0; k < taps_count; ++k) sum += load<V>(in + i + k) * taps[k];
    store(out + i, sum * scale);
  }
}

// Cumulative counts, scaled; see ScaledTotal. The compiler makes vectors of such loops.
inline void scale_short(const uint32_t* seen, const ScaledTotal& total, int64_t* scaled) {
  const uint32_t high = (uint32_t)(total.ratio() >> 32), low = (uint32_t)total.ratio();
  static_assert(ScaledTotal::kShift == 32 + 16);
  for (int b = 0; b < kContextBins; ++b) {
    const uint64_t carry = (uint64_t)seen[b] * low >> 32;
    scaled[b] = (int64_t)(((uint64_t)seen[b] * high + carry) >> 16);
  }
  const uint32_t own = seen[kContextBins - 1];
  for (int b = kContextBins; b > 0 && seen[b - 1] == own; --b) scaled[b - 1] = total.wanted();
}

bool blend_short(const int64_t* a, int64_t a_units, const int64_t* b, int64_t b_units,
                 int64_t* blended) {
  int64_t own_a = 0, own_b = 0;
  for (int i = 0; i < kContextBins; ++i) own_a += a[i], own_b += b[i];
  if (own_a == 0 || own_b == 0) return false;
  const ScaledTotal total_a(own_a, a_units), total_b(own_b, b_units);
  if (!total_a.is_short() || !total_b.is_short()) return false;
  uint32_t seen_a[kContextBins], seen_b[kContextBins], sum_a = 0, sum_b = 0;
  for (int i = 0; i < kContextBins; ++i) {
    seen_a[i] = sum_a += (uint32_t)a[i];
    seen_b[i] = sum_b += (uint32_t)b[i];
  }
  int64_t upto_a[kContextBins + 1] = {}, upto_b[kContextBins + 1] = {};
  scale_short(seen_a, total_a, upto_a + 1);
  scale_short(seen_b, total_b, upto_b + 1);
  for (int i = 0; i < kContextBins; ++i) {
    blended[i] = upto_a[i + 1] - upto_a[i] + upto_b[i + 1] - upto_b[i];
  }
  return true;
}

}  // namespace
}  // namespace qact::core::cpu
