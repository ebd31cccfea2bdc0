// Noise acts on each value independently, so it is a table: for each input byte, the probabilities
// of the output bytes. They are computed once; each value then takes one draw of 32 bits from
// Walker's alias table of its row.
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/effects.h"

namespace qact::corrupt {
namespace {

using Probabilities = std::array<double, 256>;

// 256 columns of equal width. A column holds its own byte up to a threshold (the upper
// 24 bits) and another one, the alias (the lower 8), above.
using AliasRow = std::array<uint32_t, 256>;

AliasRow make_alias_row(const Probabilities& probability) {
  std::array<double, 256> filled;
  std::vector<int> small, large;
  for (int i = 0; i < 256; ++i) {
    filled[i] = probability[i] * 256;
    (filled[i] < 1 ? small : large).push_back(i);
  }
  AliasRow row;
  for (int i = 0; i < 256; ++i) row[i] = static_cast<uint32_t>(i);
  while (!small.empty() && !large.empty()) {
    const int low = small.back(), high = large.back();
    small.pop_back();
    row[low] = static_cast<uint32_t>(filled[low] * 0x1.0p24) << 8 | static_cast<uint32_t>(high);
    filled[high] -= 1 - filled[low];
    if (filled[high] < 1) {
      large.pop_back();
      small.push_back(high);
    }
  }
  return row;
}

inline uint8_t sample(const AliasRow& row, uint32_t bits) {
  const uint32_t column = bits >> 24, fraction = bits & 0xffffff;
  return static_cast<uint8_t>(fraction < row[column] >> 8 ? column : row[column]);
}

template <class RowOf>
Effect table_effect(const EffectParams& params, RowOf row_of) {
  const auto rows = std::make_shared<std::array<AliasRow, 256>>();
  for (int value = 0; value < 256; ++value) (*rows)[value] = make_alias_row(row_of(value));
  return [rows, n = params.size.values()](const uint8_t* in, Rng& rng, uint8_t* out) {
    const AliasRow* table = rows->data();
    for (int64_t i = 0; i < n; i += 2) {
      const uint64_t bits = rng.bits();
      out[i] = sample(table[in[i]], static_cast<uint32_t>(bits));
      if (i + 1 < n) out[i + 1] = sample(table[in[i + 1]], static_cast<uint32_t>(bits >> 32));
    }
  };
}

// P(byte <= k) = P(value + N(0, deviation) < k + 1 - half), of values in [0, 255].
Probabilities normal_around(double value, double deviation, Rounding rounding) {
  const double half = rounding == Rounding::to_even ? 0.5 : 0;
  Probabilities p{};
  double before = 0;
  for (int k = 0; k < 256; ++k) {
    const double edge = k + 1 - half - value;
    double upto = 1;
    if (k < 255 && deviation > 0) {
      upto = 0.5 * std::erfc(-edge / deviation * std::numbers::sqrt2 / 2);
    } else if (k < 255) {
      upto = edge > 0;
    }
    p[k] = upto - before;
    before = upto;
  }
  return p;
}

Probabilities poisson(double mean, double photons, Rounding rounding) {
  Probabilities p{};
  double probability = std::exp(-mean), total = 0;
  const int most = static_cast<int>(mean + 12 * std::sqrt(mean) + 30);
  for (int k = 0; k <= most; ++k) {
    p[to_byte(std::min(k / photons, 1.0) * 255, rounding)] += probability;
    total += probability;
    probability *= mean / (k + 1);
  }
  for (double& value : p) value /= total;
  return p;
}

}  // namespace

// x + N(0, c)
Effect gaussian_noise(const EffectParams& params) {
  const double deviation = 255 * kGaussianNoise.at(params);
  return table_effect(
      params, [&](int value) { return normal_around(value, deviation, params.rounding()); });
}

// x + x N(0, c)
Effect speckle_noise(const EffectParams& params) {
  const double c = kSpeckleNoise.at(params);
  return table_effect(
      params, [&](int value) { return normal_around(value, c * value, params.rounding()); });
}

// Poisson(x c) / c
Effect shot_noise(const EffectParams& params) {
  const double photons = kShotNoise.at(params);
  return table_effect(params, [&](int value) {
    return poisson(value / 255.0 * photons, photons, params.rounding());
  });
}

// Salt or pepper, each with probability c / 2.
Effect impulse_noise(const EffectParams& params) {
  const double share = kImpulseNoise.at(params);
  return table_effect(params, [&](int value) {
    Probabilities p{};
    p[value] = 1 - share;
    p[0] += share / 2;
    p[255] += share / 2;
    return p;
  });
}

}  // namespace qact::corrupt
