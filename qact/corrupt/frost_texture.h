// The textures of the frost distortion.
#pragma once

#include <filesystem>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

class FrostTextures {
 public:
  // The published pictures: frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg.
  static FrostTextures from_folder(const std::filesystem::path& folder);

  // Five textures of 256 x 256 that repeat seamlessly, with the mean, deviation and
  // correlation between channels of the published ones as CIFAR-C scales them.
  static FrostTextures procedural();

  // As the distortion uses them: the published pictures scaled (bilinear, not smoothed),
  // the procedural ones as they are; grey for one channel.
  std::vector<image::Image> prepared(double scale, int channels) const;

  // A procedural texture has no edge: any crop of any size wraps around.
  bool seamless() const { return seamless_; }

 private:
  std::vector<image::Image> pictures_;
  bool seamless_ = false;
};

}  // namespace qact::corrupt
