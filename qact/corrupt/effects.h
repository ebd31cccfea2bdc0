// The makers of effects, by family.
#pragma once

#include "qact/corrupt/effect.h"

namespace qact::corrupt {

// noise.cpp
Effect gaussian_noise(const Setting& setting);
Effect shot_noise(const Setting& setting);
Effect impulse_noise(const Setting& setting);
Effect speckle_noise(const Setting& setting);

// blur.cpp
Effect defocus_blur(const Setting& setting);
Effect glass_blur(const Setting& setting);
Effect motion_blur(const Setting& setting);
Effect zoom_blur(const Setting& setting);
Effect gaussian_blur(const Setting& setting);

// weather.cpp, spatter.cpp
Effect snow(const Setting& setting);
Effect frost(const Setting& setting);
Effect fog(const Setting& setting);
Effect spatter(const Setting& setting);

// digital.cpp, elastic.cpp
Effect brightness(const Setting& setting);
Effect contrast(const Setting& setting);
Effect elastic_transform(const Setting& setting);
Effect pixelate(const Setting& setting);
Effect jpeg_compression(const Setting& setting);
Effect saturate(const Setting& setting);

// mnist.cpp, canny_edges.cpp: grey images of 28 x 28
Effect shear(const Setting& setting);
Effect scale(const Setting& setting);
Effect rotate(const Setting& setting);
Effect translate(const Setting& setting);
Effect stripe(const Setting& setting);
Effect dotted_line(const Setting& setting);
Effect zigzag(const Setting& setting);
Effect canny_edges(const Setting& setting);

// tone.cpp
Effect tone(const Setting& setting);

}  // namespace qact::corrupt
