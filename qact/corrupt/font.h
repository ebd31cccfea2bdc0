// Letters of 3 x 5 pixels for the labels of a contact sheet.
#pragma once

#include <string_view>

#include "qact/image/image.h"

namespace qact::corrupt {

// What one letter takes, with the gap after it.
inline constexpr int kLetterWidth = 4, kLetterHeight = 5;

// Draws in black, each pixel `zoom` wide; '_' is a gap. The text must lie inside.
void draw_text(std::string_view text, int y, int x, int zoom, image::Image& image);

}  // namespace qact::corrupt
