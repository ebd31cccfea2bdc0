// Mean and variance from whole numbers, so that no order of summation changes a bit: values are
// taken as q = round((x - low) 2^e), where 0 <= q <= 2^48 between the channel's extremes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "qact/core/host_device.h"
#include "qact/core/mutant.h"

namespace qact::core {

class FixedMoments {
 public:
  // What is summed over ranks: the sums of q and q^2 in digits of 32 bits, each in a word.
  static constexpr int kDigits = 4, kWords = 2 * kDigits;

  // high - low is finite.
  QACT_HD FixedMoments(double low, double high) : low_(low) {
    constexpr int kMost = 1000;  // of powers of two that double holds
    int above = 0;               // range < 2^above
    if (high > low) std::frexp(high - low, &above);
    exponent_ = std::min(kBits - above, kMost);
    scale_ = std::ldexp(1.0, exponent_);
  }

  // Of some values: what is added up over them.
  struct Sums {
    unsigned __int128 of = 0, squares = 0;

    // Word i of kWords.
    QACT_HD int64_t word(int i) const {
      const unsigned __int128 sum = i < kDigits ? of : squares;
      return static_cast<uint32_t>(sum >> (32 * (i % kDigits)));
    }
  };
  QACT_HD void add(double x, Sums& sums) const {
    const auto q = static_cast<uint64_t>(static_cast<int64_t>((x - low_) * scale_ + 0.5));
    sums.of += q;
    sums.squares += static_cast<unsigned __int128>(q) * q;
  }

  // Adds n values to the words.
  template <class Real>
  void add(const Real* x, int64_t n, int64_t* words) const {
    Sums sums;
    for (int64_t i = QACT_MUTANT("fixed_moments_first"); i < n; ++i) {
      add(static_cast<double>(x[i]), sums);
    }
    for (int i = 0; i < kWords; ++i) words[i] += sums.word(i);
  }

  struct Result {
    double mean, variance;  // biased
  };
  Result of(const int64_t* words, int64_t n) const {
    const Wide sum = number(words), square = number(words + kDigits);
    // About m = floor(mean of q): the sum of (q - m)^2 is exact modulo 2^128.
    const Wide count = static_cast<Wide>(n), m = sum / count, rest = sum - m * count;
    const Wide about = square - 2 * m * sum + m * m * count;
    const double part = static_cast<double>(rest) / static_cast<double>(n);
    const double variance =
        (static_cast<double>(about) - part * static_cast<double>(rest)) / static_cast<double>(n);
    return {low_ + std::ldexp(static_cast<double>(m) + part, -exponent_),
            std::ldexp(std::max(0.0, variance), -2 * exponent_)};
  }

 private:
  using Wide = unsigned __int128;
  static constexpr int kBits = 48;  // 2^30 squares stay below 2^127

  static Wide number(const int64_t* words) {
    Wide out = 0;
    for (int i = 0; i < kDigits; ++i) out += static_cast<Wide>(words[i]) << (32 * i);
    return out;
  }

  double low_, scale_;
  int exponent_;
};

}  // namespace qact::core
