// What the families share: a corruption with its constants chosen and its tables made.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "qact/corrupt/draw.h"
#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// The published sets whose constants exist; MNIST-C shares ImageNet-C's.
enum class Scale { cifar, tiny, imagenet };

// How values become bytes: the RGB sets truncate, MNIST-C rounds its float32 values as numpy does.
enum class Rounding { down, to_even };

struct EffectParams {
  image::Size size;
  int severity = 1;  // 1..5
  Scale scale = Scale::cifar;
  bool mnist = false;  // grey digits: MNIST-C's own variants
  std::shared_ptr<const FrostTextures> frost;

  Rounding rounding() const { return mnist ? Rounding::to_even : Rounding::down; }
};

// One image to one image, both of the setting's size. Safe to call from many threads.
using Effect = std::function<void(const uint8_t* in, Draw& draw, uint8_t* out)>;

// A value on the scale of bytes to a byte. T is the type in which the original computes: where
// its result is a whole number or a tie but for the last bit, the last bit decides.
template <class T>
uint8_t to_byte(T value, Rounding rounding) {
  value = std::min(std::max(value, T{0}), T{255});
  if (rounding == Rounding::down) return static_cast<uint8_t>(static_cast<int>(value));
  return static_cast<uint8_t>(std::lrint(static_cast<float>(value)));
}

// From the scale [0, 1], on which the originals compute.
template <class T>
void to_bytes(const std::vector<T>& in, Rounding rounding, uint8_t* out) {
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = to_byte(std::min(std::max(in[i], T{0}), T{1}) * 255, rounding);
  }
}

// Bytes to the scale [0, 1].
template <class T>
std::vector<T> from_bytes(const uint8_t* in, int64_t n) {
  std::vector<T> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] / T{255};
  return out;
}

}  // namespace qact::corrupt
