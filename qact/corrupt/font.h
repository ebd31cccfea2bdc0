// Letters of 3 x 5 pixels for the labels of a contact sheet.
#pragma once

#include <string_view>

#include "qact/image/image.h"

namespace qact::corrupt {

// The pixels of one letter; the width includes the gap after it.
inline constexpr int kLetterWidth = 4, kLetterHeight = 5;

// Draws black text with its top left corner at (y, x), each pixel enlarged to `zoom` x `zoom`.
// Other characters than letters and digits are blank. The text must fit in the image.
void draw_text(std::string_view text, int y, int x, int zoom, image::Image& image);

}  // namespace qact::corrupt
