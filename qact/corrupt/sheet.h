// A contact sheet: one picture under many distortions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// A row for each distortion, a column for each severity, with labels. Small pictures are
// shown larger.
image::Image contact_sheet(const image::Image& picture, const std::vector<std::string>& distortions,
                           const std::vector<int>& severities, uint64_t seed,
                           std::shared_ptr<const FrostTextures> frost);

}  // namespace qact::corrupt
