// The bodies of TableKernels; see kernels.h. Included once per SIMD level.
#pragma once

#include <type_traits>

#include "qact/core/context_rows.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

void prefix_sums(const uint32_t* count, int32_t bins, int32_t* before) {
  using I = IntVec<float>;
  I total{};
  for (int32_t b = 0; b <= bins; b += 16) {
    const I c = load<I>((const int32_t*)count + b), sums = prefix_sum(c);
    store(before + b, sums + total - c);
    if (!QACT_MUTANT("prefix_sums_total")) total += all_last(sums);  // from vector to vector
  }
}

bool bin_levels(const uint32_t* count, const int32_t* before, int32_t bins,
                const BinLevels& shared_rule, uint16_t* level) {
  using I = IntVec<float>;
  const BinLevels rule = shared_rule;
  const I caps = all<I>(rule.cap);
  I heaviest{};
  for (int32_t b = 0; b < bins; b += 16) {
    I c = load<I>((const int32_t*)count + b), below = load<I>(before + b);
    if (bins - b < 16) {  // what follows the last bin belongs to another rule, or is not set
      c = first_lanes(c, bins - b);
      below = first_lanes(below, bins - b);
    }
    const I upto = below + c;
    heaviest = maximum(heaviest, c);
    const I middle = below + (QACT_MUTANT("bin_levels_lower_edge") ? below : upto) + 2 * rule.rank;
    store(level + b,
          to_short(minimum(truncate<float>(to_real<float>(middle) * rule.gain + rule.base), caps)));
  }
  return any_negative(all<I>(rule.limit) - heaviest);
}

int32_t heavier(const uint32_t* count, int32_t bins, int32_t limit, int32_t* found) {
  using I = IntVec<float>;
  const I limits = all<I>(QACT_MUTANT("heavy_bins_limit") ? 4 * limit : limit);
  int32_t total = 0;
  for (int32_t b = 0; b < bins; b += 16) {
    const int32_t* from = (const int32_t*)count + b;
    const I c = bins - b < 16 ? load_some<I>(from, bins - b, 0) : load<I>(from);
    uint32_t over = negative_lanes(limits - c);
    for (; over; over &= over - 1) found[total++] = b + __builtin_ctz(over);
  }
  return total;
}

void cumulative_at(const int32_t* before, int32_t bins, const float* position, float offset,
                   float scale, int32_t n, int32_t* whole, float* part) {
  using V = Vec<float>;
  using I = IntVec<float>;
  float lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = (float)l;
  const V lane = load<V>(lanes), end = all<V>((float)bins);
  const auto t_at = [&](int32_t i) -> V {
    const V at = position ? load<V>(position + i) : lane + (float)i;
    return minimum(maximum(at * scale + offset, V{}), end);
  };
  if (!part) {  // look-ups one by one beat a gather, once all the indices are written
    for (int32_t i = 0; i < n; i += 16) store(whole + i, truncate<float>(t_at(i) + 0.5f));
    for (int32_t i = 0; i < n; ++i) whole[i] = before[whole[i]];
    return;
  }
  for (int32_t i = 0; i < n; i += 16) {
    const V t = t_at(i);
    if (last_of(t) == 0) {  // and so have all before
      store(whole + i, I{});
      store(part + i, V{});
      continue;
    }
    if (t.part[0][0] == (float)bins) {  // and so have all that follow
      for (; i < n; i += 16) {
        store(whole + i, all<I>(before[bins]));
        store(part + i, V{});
      }
      return;
    }
    const I bin = truncate<float>(t);
    const auto [below, upto] = gather_two(before, bin);
    store(whole + i, below);
    const V share = QACT_MUTANT("cumulative_part") ? V{} : t - to_real<float>(bin);
    store(part + i, to_real<float>(upto - below) * share);
  }
}

void cell_weights(const int32_t* whole, const float* part, int32_t n, int32_t negatives,
                  const float* weight, float* out) {
  for (int32_t i = 0; i < n; ++i) {
    const int32_t below = whole[i] < negatives ? whole[i] : negatives;
    const int32_t upto = whole[i + 1] < negatives ? whole[i + 1] : negatives;
    const int32_t above = (whole[i + 1] - upto) - (whole[i] - below);
    out[i] = (float)(upto - below) * weight[0] + (float)above * weight[1];
  }
  if (!part) return;
  for (int32_t i = 0; i < n; ++i) {
    const float first = part[i] * (whole[i] < negatives ? weight[0] : weight[1]);
    const float last = part[i + 1] * (whole[i + 1] < negatives ? weight[0] : weight[1]);
    out[i] += last - first;
  }
}

// Several vectors at a time, so that no sum waits for itself.
void convolve(const float* in, const float* taps, int32_t taps_count, float scale, float* out,
              int32_t n) {
  using V = Vec<float>;
  const auto sum_at = [&](auto at_once, int32_t i) {
    V sum[at_once] = {};
    for (int32_t k = 0; k < taps_count; ++k) {
      for (int v = 0; v < at_once; ++v) sum[v] += load<V>(in + i + 16 * v + k) * taps[k];
    }
    for (int v = 0; v < at_once; ++v) store(out + i + 16 * v, sum[v] * scale);
  };
  constexpr std::integral_constant<int, 2> kSeveral;
  int32_t i = 0;
  for (; i + 16 * (kSeveral - 1) < n; i += 16 * kSeveral) sum_at(kSeveral, i);
  for (; i < n; i += 16) sum_at(std::integral_constant<int, 1>{}, i);
}

void context_counts(const int32_t* whole, const float* part, int64_t* context) {
  int32_t below[kContextBins + 1] = {};
  for (int b = 0; b < kContextBins; ++b)
    below[b + 1] =
        whole[b] + (int32_t)(part[b] + (QACT_MUTANT("context_counts_off_by_one") ? 1.5f : 0.5f));
  for (int b = 0; b < kContextBins; ++b) {
    context[b] = (int64_t)(below[b + 1] - below[b]) * kContextUnit;
  }
}

// Cumulative counts of a context, right if its total is short; returns that,
inline int64_t add_up_short(const int64_t* context, uint32_t* seen) {
  using Counts = Lanes<uint32_t, 16>;
  using Totals = Lanes<int64_t, 8>;
  Counts below{};
  Totals total{};
  for (int b = 0; b < kContextBins; b += 16) {
    uint32_t counts[16];
    for (int l = 0; l < 16; ++l) counts[l] = (uint32_t)context[b + l];
    const Counts sums = prefix_sum(load<Counts>(counts));
    store(seen + b, sums + below);
    below += all_last(sums);
    total += load<Totals>(context + b) + load<Totals>(context + b + 8);
  }
  int64_t lanes[8], sum = 0;
  store(lanes, total);
  for (const int64_t lane : lanes) sum += lane;
  return sum;
}

// and the same scaled; see ScaledTotal. The compiler makes vectors of such arithmetic.
struct ShortScale {
  uint32_t high, low, own;
  int64_t wanted;

  explicit ShortScale(const ScaledTotal& total)
      : high((uint32_t)(total.ratio() >> 32)),
        low((uint32_t)total.ratio()),
        own((uint32_t)total.own()),
        wanted(total.wanted()) {}

  int64_t operator()(uint32_t seen) const {
    static_assert(ScaledTotal::kShift == 32 + 16);
    const uint64_t carry = (uint64_t)seen * low >> 32;
    const uint64_t scaled = ((uint64_t)seen * high + carry) >> 16;
    return seen == own ? wanted : (int64_t)scaled;
  }
};

bool blend_short(const int64_t* a, int64_t a_units, const int64_t* b, int64_t b_units,
                 int64_t* blended) {
  uint32_t seen_a[kContextBins], seen_b[kContextBins];
  const int64_t own_a = add_up_short(a, seen_a), own_b = add_up_short(b, seen_b);
  if (own_a == 0 || own_b == 0) return false;
  const ScaledTotal total_a(own_a, a_units), total_b(own_b, b_units);
  if (!total_a.is_short() || !total_b.is_short()) return false;
  const ShortScale scale_a(total_a), scale_b(total_b);
  int64_t upto[kContextBins + 1];
  upto[0] = 0;
  for (int i = 0; i < kContextBins; ++i) upto[i + 1] = scale_a(seen_a[i]) + scale_b(seen_b[i]);
  for (int i = 0; i < kContextBins; ++i) blended[i] = upto[i + 1] - upto[i];
  return true;
}

}  // namespace
}  // namespace qact::core::cpu
