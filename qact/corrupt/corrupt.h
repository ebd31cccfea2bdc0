// The standard corruptions at five severities, faithful to the published ones, from a seed. The
// constants follow the image's size: CIFAR-C's up to 32 x 32, Tiny-ImageNet-C's up to 64 x 64,
// ImageNet-C's above; MNIST-C's for grey images up to 28 x 28. stripe, dotted_line, zigzag,
// canny_edges and gamma4 have no severities: all five are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qact/corrupt/effect.h"

namespace qact::corrupt {

enum class Family { noise, blur, weather, digital, mnist, tones };

struct Corruption {
  std::string_view name;
  Family family;
  bool benchmark;      // one of the 15
  bool extra;          // one of the 4 held out for validation
  int mnist_severity;  // the severity published in MNIST-C; 0: not part of it
  Effect (*make)(const EffectParams&);
  int64_t images_per_draw = 1;  // this many consecutive images share their random draws
};

inline constexpr int kSeverities = 5;

std::span<const Corruption> corruptions();

// Throws for an unknown name, and lists those that exist.
const Corruption& find_corruption(std::string_view name);

// One corruption at one severity, prepared for images of one size.
class Corruptor {
 public:
  // frost: the textures of the frost corruption; null for procedural ones.
  Corruptor(std::string_view corruption, int severity, image::Size size, uint64_t seed = 0,
            std::shared_ptr<const FrostTextures> frost = nullptr);

  const Corruption& corruption() const { return corruption_; }

  // The result depends only on the image, the seed, the corruption, the severity and the image's
  // index (for tone: on index / 500). `out` must not alias `in`.
  void apply(const uint8_t* in, int64_t index, uint8_t* out) const;

  // `count` images (NHWC) of the indices `first`, `first` + 1, ...
  void apply(const uint8_t* in, int64_t first, int64_t count, uint8_t* out, int threads = 0) const;

 private:
  const Corruption& corruption_;
  int severity_;
  image::Size size_;
  uint64_t seed_;
  Effect effect_;
};

}  // namespace qact::corrupt
