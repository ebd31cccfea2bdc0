// What the families share: a distortion with its constants chosen and its tables made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "qact/corrupt/draw.h"
#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// The published sets whose constants exist; MNIST-C shares ImageNet-C's.
enum class Scale { cifar, tiny, imagenet };

struct Setting {
  image::Size size;
  int severity = 1;  // 1..5
  Scale scale = Scale::cifar;
  bool mnist = false;  // grey digits: MNIST-C's own variants
  std::shared_ptr<const FrostTextures> frost;

  // The RGB sets truncate to bytes, MNIST-C rounds.
  float half() const { return mnist ? 0.5f : 0.0f; }
};

// One image to one image, both of the setting's size. Safe to call from many threads.
using Effect = std::function<void(const uint8_t* in, Draw& draw, uint8_t* out)>;

// A value on the scale of bytes to a byte.
inline uint8_t to_byte(float value, float half) {
  return static_cast<uint8_t>(std::min(std::max(value, 0.0f), 255.0f) + half);
}

inline void to_bytes(const float* in, int64_t n, float half, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<uint8_t>(static_cast<int>(std::min(std::max(in[i], 0.0f), 255.0f) + half));
  }
}

}  // namespace qact::corrupt
