// The random numbers of a corruption: one generator per image.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qact/base/random.h"

namespace qact::corrupt {

// Marsaglia and Tsang's ziggurat: 256 layers of equal area under exp(-x^2 / 2), x > 0.
struct Ziggurat {
  static constexpr double kTail = 3.6541528853610088;
  std::array<double, 257> edge, height;
};
const Ziggurat& ziggurat();

class Rng {
 public:
  // The numbers depend on these four only.
  Rng(uint64_t seed, std::string_view corruption, int severity, int64_t image);

  uint64_t bits() { return random_.bits(); }
  double uniform() { return random_.uniform(); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, n).
  int below(int n) { return static_cast<int>((bits() >> 32) * static_cast<uint64_t>(n) >> 32); }
  bool coin() { return bits() >> 63; }
  double normal();

 private:
  double normal_beyond(int layer, double x);

  base::Random random_;
  const Ziggurat& ziggurat_;
};

inline double Rng::normal() {
  const uint64_t drawn = bits();
  const int layer = drawn & 255;
  const double x = (static_cast<int64_t>(drawn) >> 11) * 0x1.0p-52 * ziggurat_.edge[layer];
  if ((x < 0 ? -x : x) < ziggurat_.edge[layer + 1]) return x;
  return normal_beyond(layer, x);
}

}  // namespace qact::corrupt
