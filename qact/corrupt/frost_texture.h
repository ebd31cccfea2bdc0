// The textures of the frost corruption.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::corrupt {

class FrostTextures {
 public:
  // The files frost1.png, frost2.png, frost3.png, frost4.jpg and frost5.jpg. `name` says which
  // textures they are.
  static FrostTextures from_folder(const std::filesystem::path& folder, std::string name);

  // Five seamless textures of 256 x 256. Mean, standard deviation and correlation between channels
  // are those of the published textures, scaled as for CIFAR-C.
  static FrostTextures procedural();

  // As the corruption uses them: files are scaled (bilinear, without antialiasing), procedural ones
  // are not; grey for one channel, as OpenCV reads them.
  std::vector<image::Image> prepared(double scale, int channels) const;

  // "procedural", or the name given to from_folder(). Every result records it.
  const std::string& name() const { return name_; }

  // Procedural textures are periodic: a crop may wrap around.
  bool seamless() const { return seamless_; }

 private:
  std::string name_;
  std::vector<image::Image> images_, grey_;
  bool seamless_ = false;
};

}  // namespace qact::corrupt
