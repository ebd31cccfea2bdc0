// The interface of all effects: a corruption with its constants and tables prepared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "qact/corrupt/frost_texture.h"
#include "qact/corrupt/rng.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// The published datasets that have constants; MNIST-C uses ImageNet-C's.
enum class Scale { cifar, tiny, imagenet };

// From floating point to bytes: the RGB datasets truncate, MNIST-C rounds float32 values as numpy
// does, halves to even.
enum class Rounding { down, to_even };

struct EffectParams {
  image::Size size;
  int severity = 1;  // 1..5
  Scale scale = Scale::cifar;
  bool mnist = false;  // grey digits: MNIST-C's variants
  std::shared_ptr<const FrostTextures> frost;

  Rounding rounding() const { return mnist ? Rounding::to_even : Rounding::down; }
};

// Corrupts one image of EffectParams::size. Thread-safe.
using Effect = std::function<void(const uint8_t* in, Rng& rng, uint8_t* out)>;

// A value in [0, 255] to a byte. T is the type in which the original computes: where its result is
// next to a whole number or a tie, the last bit decides.
template <class T>
uint8_t to_byte(T value, Rounding rounding) {
  value = std::min(std::max(value, T{0}), T{255});
  if (rounding == Rounding::down) return static_cast<uint8_t>(static_cast<int>(value));
  return static_cast<uint8_t>(std::lrint(static_cast<float>(value)));
}

// From values in [0, 1].
template <class T>
void to_bytes(const std::vector<T>& in, Rounding rounding, uint8_t* out) {
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = to_byte(std::min(std::max(in[i], T{0}), T{1}) * 255, rounding);
  }
}

// Bytes to values in [0, 1].
template <class T>
std::vector<T> from_bytes(const uint8_t* in, int64_t n) {
  std::vector<T> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] / T{255};
  return out;
}

}  // namespace qact::corrupt
