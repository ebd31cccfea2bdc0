// Images in a folder per class.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "qact/image/png.h"

namespace qact {

// `each` images of 16x16 for every class, with a brighter band that belongs to its name, wherever
// the class stands among others.
inline void write_images(const std::filesystem::path& folder,
                         const std::vector<std::string>& classes, int each) {
  uint32_t noise = 1;
  for (const std::string& name : classes) {
    std::filesystem::create_directories(folder / name);
    const int band = name == "cat" ? 0 : name == "cow" ? 1 : 2;
    for (int i = 0; i < each; ++i) {
      image::Image image({16, 16, 3});
      for (size_t p = 0; p < image.pixels.size(); ++p) {
        noise = noise * 1664525 + 1013904223;
        const int row = static_cast<int>(p) / 48;
        image.pixels[p] = static_cast<uint8_t>((noise >> 25) + (row / 6 == band ? 100 : 0));
      }
      const std::vector<uint8_t> bytes = image::encode_png(image);
      std::ofstream(folder / name / (std::to_string(i) + ".png"), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    }
  }
}

}  // namespace qact
