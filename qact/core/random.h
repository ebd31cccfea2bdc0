// A small counter-based generator: the same numbers for the same (seed, stream).
#pragma once

#include <cstdint>

namespace qact::core {

class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : state_(mix(mix(seed) ^ (stream + 1) * kStep)) {}

  uint64_t bits() { return mix(state_ += kStep); }

  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

 private:
  // The golden ratio's fraction, and the finaliser of splitmix64.
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace qact::core
