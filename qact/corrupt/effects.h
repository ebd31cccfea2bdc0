// The makers of effects, by family.
#pragma once

#include "qact/corrupt/effect.h"

namespace qact::corrupt {

// noise.cpp
Effect gaussian_noise(const EffectParams& setting);
Effect shot_noise(const EffectParams& setting);
Effect impulse_noise(const EffectParams& setting);
Effect speckle_noise(const EffectParams& setting);

// blur.cpp
Effect defocus_blur(const EffectParams& setting);
Effect glass_blur(const EffectParams& setting);
Effect motion_blur(const EffectParams& setting);
Effect zoom_blur(const EffectParams& setting);
Effect gaussian_blur(const EffectParams& setting);

// weather.cpp, spatter.cpp
Effect snow(const EffectParams& setting);
Effect frost(const EffectParams& setting);
Effect fog(const EffectParams& setting);
Effect spatter(const EffectParams& setting);

// digital.cpp, elastic.cpp
Effect brightness(const EffectParams& setting);
Effect contrast(const EffectParams& setting);
Effect elastic_transform(const EffectParams& setting);
Effect pixelate(const EffectParams& setting);
Effect jpeg_compression(const EffectParams& setting);
Effect saturate(const EffectParams& setting);

// mnist.cpp, canny_edges.cpp: grey images of 28 x 28
Effect shear(const EffectParams& setting);
Effect scale(const EffectParams& setting);
Effect rotate(const EffectParams& setting);
Effect translate(const EffectParams& setting);
Effect stripe(const EffectParams& setting);
Effect dotted_line(const EffectParams& setting);
Effect zigzag(const EffectParams& setting);
Effect canny_edges(const EffectParams& setting);

// tone.cpp
Effect tone(const EffectParams& setting);

}  // namespace qact::corrupt
