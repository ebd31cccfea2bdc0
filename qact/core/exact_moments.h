// Mean and variance from exact sums, so that neither the order of summation nor who sums what
// changes a bit. Every value is a whole number times the smallest power of two of its type; the
// sums of x and x^2 in that unit are kept whole, in digits that add up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "qact/core/host_device.h"
#include "qact/core/mutant.h"

namespace qact::core {

template <class Real>
class ExactMoments {
  using Limits = std::numeric_limits<Real>;
  using Wide = unsigned __int128;
  // x = m 2^p units: m has so many bits, p goes up to kMostPower.
  static constexpr int kBits = Limits::digits;
  static constexpr int kMostPower = Limits::max_exponent - Limits::min_exponent;
  // The smallest number is 2^-kUnit.
  static constexpr int kUnit = kBits - Limits::min_exponent;
  static constexpr int kCountBits = 31;  // at most 2^30 values, and a sign

  static constexpr int digits(int bits) { return (bits + kCountBits + 31) / 32; }

 public:
  // What is summed over ranks: both sums in digits of 32 bits, each in a word of 64 with a sign.
  static constexpr int kDigits = digits(kBits + kMostPower);
  static constexpr int kSquareDigits = digits(2 * (kBits + kMostPower));
  static constexpr int kWords = kDigits + kSquareDigits;

  // Sums of at most kMostValues finite values in registers, as multiples q of a unit: none above
  // `largest` in absolute value. What is no multiple of it goes into the words at once.
  class Sums {
    // Values that are so many powers of two below the largest still are.
    static constexpr int kSlack = kBits == 24 ? 28 : 4;
    static_assert(kBits + kSlack < 64);
    // Of so many bits values are, counted in coarse units.
    static constexpr int kCoarseBits = 42, kCoarse = kBits + kSlack - kCoarseBits;

   public:
    static constexpr int64_t kMostValues = int64_t{1} << (128 - 2 * (kBits + kSlack));

    QACT_HD explicit Sums(Real largest) {
      constexpr int kLeast = std::max(0, kUnit - 1023);  // whose reciprocal double holds
      base_ = std::max(parts(largest).power - kSlack, kLeast);
      unit_ = std::ldexp(1.0, base_ - kUnit);
      per_unit_ = std::ldexp(1.0, kUnit - base_);
    }

    // add_word(i, digit) adds to word i.
    template <class AddWord>
    QACT_HD void add(Real x, const AddWord& add_word) {
      const auto q = static_cast<int64_t>(x * per_unit_);
      if (static_cast<double>(q) * unit_ != x) {
        if (!QACT_MUTANT("exact_moments_small")) add_one(parts(x), add_word);
        return;
      }
      sum_ += static_cast<Wide>(q);
      squares_ += static_cast<Wide>(static_cast<Signed>(q) * q);
    }
    // Sums of whole numbers of a coarser unit, none above 2^42 of it.
    double coarse_unit() const { return std::ldexp(unit_, kCoarse); }
    void add_coarse(int64_t sum, Wide squares) {
      sum_ += static_cast<Wide>(sum) << kCoarse;
      squares_ += squares << (2 * kCoarse);
    }
    // Over a group of threads with one unit: sum(word) is that of all of them.
    template <class SumWord>
    QACT_HD void add_up(const SumWord& sum) {
      for (Wide* wide : {&sum_, &squares_}) {
        Wide all = 0;
        for (int bit = 0; bit < 128; bit += 32) {
          all += static_cast<Wide>(sum(static_cast<uint32_t>(*wide >> bit))) << bit;
        }
        *wide = all;
      }
    }
    template <class AddWord>
    QACT_HD void finish(const AddWord& add_word) const {
      const bool negative = sum_ >> 127;
      add_digits(negative ? -sum_ : sum_, base_, negative, 0, add_word);
      add_digits(squares_, 2 * base_, false, kDigits, add_word);
    }

   private:
    using Signed = __int128;
    int base_;  // the unit is so many powers of two above the smallest number
    double unit_, per_unit_;
    Wide sum_ = 0, squares_ = 0;
  };

  // Adds n finite values to the words, none above `largest` in absolute value.
  // add_block(x, n, sums) adds some to the sums by add_coarse(), or nothing where it returns false.
  template <class AddBlock>
  static void add(const Real* x, int64_t n, Real largest, const AddBlock& add_block,
                  int64_t* words) {
    constexpr int64_t kBlock = 1024;
    static_assert(Sums::kMostValues % kBlock == 0);
    const auto add_word = [&](int i, int64_t digit) { words[i] += digit; };
    for (int64_t begin = 0; begin < n; begin += Sums::kMostValues) {
      Sums sums(largest);
      const int64_t end = std::min(n, begin + Sums::kMostValues);
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t size = std::min(kBlock, end - i);
        if (add_block(x + i, size, sums)) continue;
        for (int64_t k = QACT_MUTANT("exact_moments_first"); k < size; ++k) {
          sums.add(x[i + k], add_word);
        }
      }
      sums.finish(add_word);
    }
  }

  struct Result {
    double mean, variance;  // biased
  };
  static Result of(const int64_t* words, int64_t n) {
    constexpr int kProduct = std::max(2 * kDigits, kSquareDigits + 1);
    uint32_t sum[kDigits], square[kSquareDigits], about[kProduct];
    const bool negative = carry(words, kDigits, sum);
    carry(words + kDigits, kSquareDigits, square);
    // n^2 times the variance is n sum(x^2) - sum(x)^2, a whole number.
    scale(square, kSquareDigits, static_cast<uint32_t>(n), about, kProduct);
    subtract_square(sum, kDigits, about, kProduct);
    const double count = static_cast<double>(n);
    const Highest total = highest(sum, kDigits), spread = highest(about, kProduct);
    // Divided as a whole number, so that the mean of equal values is their value.
    const auto quotient = static_cast<double>(total.bits / static_cast<Wide>(n));
    const double mean = std::ldexp(quotient, total.power - kUnit);
    return {negative ? -mean : mean,
            std::ldexp(static_cast<double>(spread.bits) / count / count, spread.power - 2 * kUnit)};
  }

 private:
  using Word = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;

  struct Parts {
    uint64_t bits;
    int power;
    bool negative;
  };
  QACT_HD static Parts parts(Real x) {
    Word word;
    std::memcpy(&word, &x, sizeof(word));
    constexpr Word kHidden = Word{1} << (kBits - 1);
    constexpr int kExponents = 2 * Limits::max_exponent;
    const int exponent = static_cast<int>(word >> (kBits - 1)) & (kExponents - 1);
    return {(word & (kHidden - 1)) | (exponent > 0 ? kHidden : 0), exponent - (exponent > 0),
            static_cast<bool>(word >> (8 * sizeof(Real) - 1))};
  }

  // A value alone.
  template <class AddWord>
  QACT_HD static void add_one(const Parts& of, const AddWord& add_word) {
    add_digits(of.bits, of.power, of.negative, 0, add_word);
    add_digits(static_cast<Wide>(of.bits) * of.bits, 2 * of.power, false, kDigits, add_word);
  }

  // number * 2^bit, to the words from `first` on.
  template <class AddWord>
  QACT_HD static void add_digits(Wide number, int bit, bool negative, int first,
                                 const AddWord& add_word) {
    const int shift = bit % 32;
    Wide rest = number << shift;
    const auto above = static_cast<uint32_t>(shift > 0 ? number >> (128 - shift) : 0);
    for (int i = first + bit / 32, k = 0; k < 5; ++i, ++k, rest >>= 32) {
      const int64_t digit = k < 4 ? static_cast<uint32_t>(rest) : above;
      if (digit != 0) add_word(i, negative ? -digit : digit);
    }
  }

  // The absolute value of a number whose digits are out of range; whether it is negative.
  static bool carry(const int64_t* words, int size, uint32_t* to) {
    int64_t over = 0;
    for (int i = 0; i < size; ++i) {
      const int64_t digit = words[i] + over;
      to[i] = static_cast<uint32_t>(digit);
      over = QACT_MUTANT("exact_moments_carry") ? 0 : digit >> 32;
    }
    if (over >= 0) return false;
    uint64_t one = 1;
    for (int i = 0; i < size; ++i) {
      one += static_cast<uint32_t>(~to[i]);
      to[i] = static_cast<uint32_t>(one);
      one >>= 32;
    }
    return true;
  }

  static void scale(const uint32_t* number, int size, uint32_t by, uint32_t* to, int to_size) {
    uint64_t over = 0;
    for (int i = 0; i < to_size; ++i) {
      over += i < size ? static_cast<uint64_t>(number[i]) * by : 0;
      to[i] = static_cast<uint32_t>(over);
      over >>= 32;
    }
  }

  // from -= number^2, which is not larger.
  static void subtract_square(const uint32_t* number, int size, uint32_t* from, int from_size) {
    for (int i = 0; i < size; ++i) {
      if (number[i] == 0) continue;
      uint64_t over = 0;  // of the products, and what was borrowed
      for (int j = 0; i + j < from_size; ++j) {
        over += j < size ? static_cast<uint64_t>(number[i]) * number[j] : 0;
        const auto digit = static_cast<uint32_t>(over);
        over = (over >> 32) + (from[i + j] < digit);
        from[i + j] -= digit;
      }
    }
  }

  // bits * 2^power, of the highest digits.
  struct Highest {
    Wide bits;
    int power;
  };
  static Highest highest(const uint32_t* number, int size) {
    int top = size - 1;
    while (top > 0 && number[top] == 0) --top;
    Wide bits = 0;
    for (int k = 0; k < 4; ++k) bits = bits << 32 | (k <= top ? number[top - k] : 0);
    return {bits, 32 * (top - 3)};
  }
};

}  // namespace qact::core
