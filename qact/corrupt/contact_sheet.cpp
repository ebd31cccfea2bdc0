#include "qact/corrupt/contact_sheet.h"

#include <algorithm>

#include "qact/corrupt/corrupt.h"
#include "qact/corrupt/font.h"

namespace qact::corrupt {
namespace {

constexpr int kGap = 4, kZoom = 2, kTile = 64;  // enlarged images are about this large

void paste(const image::Image& tile, int top, int left, int zoom, image::Image& sheet) {
  const int channels = tile.size.channels;
  for (int y = 0; y < tile.size.height * zoom; ++y) {
    for (int x = 0; x < tile.size.width * zoom; ++x) {
      const uint8_t* from = tile.row(y / zoom) + x / zoom * channels;
      std::copy_n(from, channels, sheet.row(top + y) + (left + x) * channels);
    }
  }
}

// The row's label. Frost says which textures it has.
std::string label_of(const std::string& corruption, const FrostTextures* frost) {
  if (corruption != "frost") return corruption;
  const std::string name = frost ? frost->name() : "procedural";
  return corruption + " " + (name.starts_with("sha256:") ? name.substr(7, 8) : name);
}

}  // namespace

image::Image contact_sheet(const image::Image& image, const std::vector<std::string>& corruptions,
                           const std::vector<int>& severities, uint64_t seed,
                           std::shared_ptr<const FrostTextures> frost) {
  const auto [height, width, channels] = image.size;
  const int zoom = std::max(1, kTile / std::max(height, width));
  size_t longest = 0;
  for (const std::string& name : corruptions) {
    longest = std::max(longest, label_of(name, frost.get()).size());
  }
  const int letters = kZoom * kLetterWidth, line = kZoom * kLetterHeight;
  const int margin = static_cast<int>(longest) * letters + 2 * kGap, header = line + 2 * kGap;
  const int down = height * zoom + kGap, across = width * zoom + kGap;

  image::Image sheet({header + static_cast<int>(corruptions.size()) * down,
                      margin + static_cast<int>(severities.size()) * across, channels});
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), uint8_t{255});
  image::Image tile(image.size);
  for (size_t column = 0; column < severities.size(); ++column) {
    const int left = margin + static_cast<int>(column) * across;
    const std::string label = std::to_string(severities[column]);
    draw_text(label, kGap, left + (width * zoom - letters) / 2, kZoom, sheet);
    for (size_t row = 0; row < corruptions.size(); ++row) {
      const int top = header + static_cast<int>(row) * down;
      Corruptor(corruptions[row], severities[column], image.size, seed, frost)
          .apply(image.pixels.data(), 0, tile.pixels.data());
      paste(tile, top, left, zoom, sheet);
      if (column == 0) {
        draw_text(label_of(corruptions[row], frost.get()), top + (height * zoom - line) / 2, kGap,
                  kZoom, sheet);
      }
    }
  }
  return sheet;
}

}  // namespace qact::corrupt
