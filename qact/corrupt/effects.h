// One factory per corruption, in the source file of its family. corrupt.cpp lists them all.
#pragma once

#include "qact/corrupt/effect.h"

namespace qact::corrupt {

// noise.cpp
Effect gaussian_noise(const EffectParams& params);
Effect shot_noise(const EffectParams& params);
Effect impulse_noise(const EffectParams& params);
Effect speckle_noise(const EffectParams& params);

// blur.cpp
Effect defocus_blur(const EffectParams& params);
Effect glass_blur(const EffectParams& params);
Effect motion_blur(const EffectParams& params);
Effect zoom_blur(const EffectParams& params);
Effect gaussian_blur(const EffectParams& params);

// weather.cpp, spatter.cpp
Effect snow(const EffectParams& params);
Effect frost(const EffectParams& params);
Effect fog(const EffectParams& params);
Effect spatter(const EffectParams& params);

// digital.cpp, elastic.cpp
Effect brightness(const EffectParams& params);
Effect contrast(const EffectParams& params);
Effect elastic_transform(const EffectParams& params);
Effect pixelate(const EffectParams& params);
Effect jpeg_compression(const EffectParams& params);
Effect saturate(const EffectParams& params);

// mnist.cpp, canny_edges.cpp: grey images of 28 x 28
Effect shear(const EffectParams& params);
Effect scale(const EffectParams& params);
Effect rotate(const EffectParams& params);
Effect translate(const EffectParams& params);
Effect stripe(const EffectParams& params);
Effect dotted_line(const EffectParams& params);
Effect zigzag(const EffectParams& params);
Effect canny_edges(const EffectParams& params);

// tone.cpp
Effect tone(const EffectParams& params);
Effect gamma4(const EffectParams& params);

}  // namespace qact::corrupt
