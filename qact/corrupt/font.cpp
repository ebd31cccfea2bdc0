#include "qact/corrupt/font.h"

#include <array>
#include <cstdint>

namespace qact::corrupt {
namespace {

// Five rows of three bits, the top row first; the left pixel is the highest bit.
using Glyph = std::array<uint8_t, kLetterHeight>;

constexpr Glyph kLetters[26] = {{2, 5, 7, 5, 5}, {6, 5, 6, 5, 6}, {3, 4, 4, 4, 3}, {6, 5, 5, 5, 6},
                                {7, 4, 6, 4, 7}, {7, 4, 6, 4, 4}, {3, 4, 5, 5, 3}, {5, 5, 7, 5, 5},
                                {7, 2, 2, 2, 7}, {1, 1, 1, 5, 2}, {5, 5, 6, 5, 5}, {4, 4, 4, 4, 7},
                                {5, 7, 7, 5, 5}, {6, 5, 5, 5, 5}, {2, 5, 5, 5, 2}, {6, 5, 6, 4, 4},
                                {2, 5, 5, 6, 3}, {6, 5, 6, 5, 5}, {3, 4, 2, 1, 6}, {7, 2, 2, 2, 2},
                                {5, 5, 5, 5, 7}, {5, 5, 5, 5, 2}, {5, 5, 7, 7, 5}, {5, 5, 2, 5, 5},
                                {5, 5, 2, 2, 2}, {7, 1, 2, 4, 7}};
constexpr Glyph kDigits[10] = {{7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {6, 1, 2, 4, 7}, {6, 1, 2, 1, 6},
                               {5, 5, 7, 1, 1}, {7, 4, 6, 1, 6}, {3, 4, 7, 5, 7}, {7, 1, 2, 2, 2},
                               {7, 5, 7, 5, 7}, {7, 5, 7, 1, 6}};

Glyph glyph(char letter) {
  if (letter >= 'a' && letter <= 'z') return kLetters[letter - 'a'];
  if (letter >= '0' && letter <= '9') return kDigits[letter - '0'];
  return {};
}

}  // namespace

void draw_text(std::string_view text, int y, int x, int zoom, image::Image& image) {
  for (const char letter : text) {
    const Glyph rows = glyph(letter);
    for (int v = 0; v < kLetterHeight * zoom; ++v) {
      for (int u = 0; u < 3 * zoom; ++u) {
        if (!(rows[v / zoom] >> (2 - u / zoom) & 1)) continue;
        for (int c = 0; c < image.size.channels; ++c) {
          image.row(y + v)[(x + u) * image.size.channels + c] = 0;
        }
      }
    }
    x += kLetterWidth * zoom;
  }
}

}  // namespace qact::corrupt
