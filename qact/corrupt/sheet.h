// A contact sheet: one image under many corruptions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// A row for each corruption, a column for each severity, with labels. Small images are
// shown larger.
image::Image contact_sheet(const image::Image& image, const std::vector<std::string>& corruptions,
                           const std::vector<int>& severities, uint64_t seed,
                           std::shared_ptr<const FrostTextures> frost);

}  // namespace qact::corrupt
