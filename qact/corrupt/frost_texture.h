// The textures of the frost corruption.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

class FrostTextures {
 public:
  // Images as the published ones: frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg.
  // `name` says which they are.
  static FrostTextures from_folder(const std::filesystem::path& folder, std::string name);

  // Five textures of 256 x 256 that repeat seamlessly, with the mean, deviation and
  // correlation between channels of the published ones as CIFAR-C scales them.
  static FrostTextures procedural();

  // As the corruption uses them: the published images scaled (bilinear, not smoothed),
  // the procedural ones as they are; grey for one channel, as OpenCV reads them.
  std::vector<image::Image> prepared(double scale, int channels) const;

  // "procedural" or as from_folder() was told: with every result goes which frost it was.
  const std::string& name() const { return name_; }

  // A procedural texture has no edge: any crop of any size wraps around.
  bool seamless() const { return seamless_; }

 private:
  std::string name_;
  std::vector<image::Image> images_, grey_;
  bool seamless_ = false;
};

}  // namespace qact::corrupt
