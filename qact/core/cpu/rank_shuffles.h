// Levels among few thresholds, by shuffles of tables that stay in registers: for AVX-512. Included
// by rank_kernels.h alone.
#pragma once

#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

#if defined(__AVX512F__)
namespace qact::core::cpu {
namespace {

// A binary search, one bit of the level after the other, the highest first. Bits are kept in the
// order in which they are found, the first as bit 0: so those found number the thresholds of the
// next step, without a shift. In the order of such reversed numbers a table has the thresholds of
// the seventh step first, 64 of them, then the 32 of the sixth, and so on.
class ShortSearch {
 public:
  static constexpr int kVectors = 4;  // side by side, since each step waits for the one before it

  // The first five bits found, and the last two.
  struct Place {
    __m512i bits;
    __mmask16 sixth, seventh;
  };

  // kShortTable entries, entry k where the reverse of its seven bits says.
  class Table {
   public:
    explicit Table(const float* entries) {
      for (int r = 0; r < 8; ++r) part_[r] = _mm512_loadu_ps(entries + 16 * r);
      exchange<4, 1>();
      exchange<2, 2>();
      exchange<1, 4>();
    }

    Vec<float> at(const Place& place) const {
      const __m512 low = _mm512_mask_blend_ps(place.sixth, among<0>(place), among<2>(place));
      const __m512 high = _mm512_mask_blend_ps(place.sixth, among<4>(place), among<6>(place));
      const __mmask16 upper = QACT_MUTANT("apply_upper") ? place.sixth : place.seventh;
      return {{(Vec<float>::Part)_mm512_mask_blend_ps(upper, low, high)}};
    }
    // Among 32 entries from that register on; among 16.
    template <int kFrom>
    __m512 among(const Place& place) const {
      return _mm512_permutex2var_ps(part_[kFrom], place.bits, part_[kFrom + 1]);
    }
    template <int kFrom>
    __m512 among_few(const Place& place) const {
      return _mm512_permutexvar_ps(place.bits, part_[kFrom]);
    }
    // A lane of the last register, in all lanes; lanes from 8 on, as the first.
    __m512 all_last(int lane) const {
      return _mm512_permutexvar_ps(_mm512_set1_epi32(lane), part_[7]);
    }
    __m512 last_upper() const { return _mm512_shuffle_f32x4(part_[7], part_[7], 2); }

   private:
    static_assert(kShortTable == 8 * 16);

    // A bit of a register's number takes the place of a bit of the lane's, and the other way round.
    template <int kLane, int kRegister>
    void exchange() {
      alignas(64) int32_t lanes[2][16];
      for (int l = 0; l < 16; ++l) {
        const int second = l & kLane ? 16 : 0;
        lanes[0][l] = (l & ~kLane) + second;
        lanes[1][l] = (l | kLane) + second;
      }
      const __m512i low = _mm512_load_si512(lanes[0]), high = _mm512_load_si512(lanes[1]);
      for (int r = 0; r < 8; ++r) {
        if (r & kRegister) continue;
        const __m512 a = part_[r], b = part_[r | kRegister];
        part_[r] = _mm512_permutex2var_ps(a, low, b);
        part_[r | kRegister] = _mm512_permutex2var_ps(a, high, b);
      }
    }

    __m512 part_[8];
  };

  // The levels as numbers.
  class Levels {
   public:
    explicit Levels(int32_t count) : table_(numbers(count).of) {}
    Vec<float> at(const Place& place) const { return table_.at(place); }

   private:
    struct Numbers {
      float of[kShortTable];
    };
    static Numbers numbers(int32_t count) {
      Numbers out;
      for (int k = 0; k < kShortTable; ++k) out.of[k] = (float)(k < count ? k : count);
      return out;
    }

    Table table_;
  };

  explicit ShortSearch(const ApplyTable<float>& table)
      : thresholds_(table.thresholds),
        first_(thresholds_.all_last(14)),
        second_{thresholds_.all_last(12), thresholds_.all_last(13)},
        third_(thresholds_.last_upper()) {}

  template <int kCount>
  void find(const Vec<float> (&values)[kCount], Place (&place)[kCount]) const {
    const auto each_value = [](const auto& work) {
#pragma GCC unroll 4
      for (int i = 0; i < kCount; ++i) work(i);
    };
    const auto reached = [&](int i, __m512 threshold) {
      return _mm512_cmp_ps_mask(threshold, (__m512)values[i].part[0], _CMP_LE_OQ);
    };
    const auto step = [&](int number, const auto& threshold) {
      const __m512i bit = _mm512_set1_epi32(1 << number);
      each_value([&](int i) {
        const __m512i bits = place[i].bits;
        place[i].bits = _mm512_mask_or_epi32(bits, reached(i, threshold(place[i])), bits, bit);
      });
    };
    each_value([&](int i) {
      const __mmask16 first = reached(i, first_);
      const __mmask16 second = reached(i, _mm512_mask_blend_ps(first, second_[0], second_[1]));
      const __m512i bits = _mm512_maskz_set1_epi32(first, 1);
      place[i].bits = _mm512_mask_or_epi32(bits, second, bits, _mm512_set1_epi32(2));
    });
    step(2, [&](const Place& at) { return _mm512_permutexvar_ps(at.bits, third_); });
    step(3, [&](const Place& at) {
      return QACT_MUTANT("apply_fourth") ? third_ : thresholds_.among_few<7>(at);
    });
    step(4, [&](const Place& at) { return thresholds_.among_few<6>(at); });
    each_value([&](int i) { place[i].sixth = reached(i, thresholds_.among<4>(place[i])); });
    each_value([&](int i) {
      const Place& at = place[i];
      const __m512 low = thresholds_.among<0>(at), high = thresholds_.among<2>(at);
      const __mmask16 upper = QACT_MUTANT("apply_sixth") ? 0 : at.sixth;
      place[i].seventh = reached(i, _mm512_mask_blend_ps(upper, low, high));
    });
  }

 private:
  Table thresholds_;
  __m512 first_, second_[2], third_;
};

}  // namespace
}  // namespace qact::core::cpu
#endif
