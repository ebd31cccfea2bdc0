// A contact sheet: one image under many corruptions and severities.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qact/corrupt/frost_texture.h"
#include "qact/image/image.h"

namespace qact::corrupt {

// A row for each corruption and a column for each severity, with labels. Small images are enlarged.
image::Image contact_sheet(const image::Image& image, const std::vector<std::string>& corruptions,
                           const std::vector<int>& severities, uint64_t seed,
                           std::shared_ptr<const FrostTextures> frost);

}  // namespace qact::corrupt
