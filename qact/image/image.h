// Images in memory: 8 bits per channel, HWC ("channels last").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace qact::image {

struct Size {
  int height = 0;
  int width = 0;
  int channels = 0;  // 1 grey, 3 RGB

  int64_t values() const { return int64_t{height} * width * channels; }
  bool operator==(const Size&) const = default;
};

// One image that owns its pixels.
struct Image {
  Size size;
  std::vector<uint8_t> pixels;

  Image() = default;
  explicit Image(Size s) : size(s), pixels(s.values()) {}

  uint8_t* row(int y) { return pixels.data() + int64_t{y} * size.width * size.channels; }
  const uint8_t* row(int y) const {
    return pixels.data() + int64_t{y} * size.width * size.channels;
  }
};

// A file that claims more pixels than this is a decompression bomb.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;
// Throws where there are more pixels. `format` starts the message.
void check_pixels(std::string_view format, int64_t width, int64_t height);

}  // namespace qact::image
