// Random increasing tone curves: no standard corruption, but the one that ranks of pixels do not
// see and their moments do.
#include <array>
#include <cmath>

#include "qact/corrupt/effects.h"

namespace qact::corrupt {
namespace {

// A gamma, or one over it, from sqrt(most) to most.
double draw_gamma(double most, Draw& draw) {
  const double sign = draw.coin() ? 1 : -1;
  return std::pow(most, sign * draw.uniform(0.5, 1));
}

}  // namespace

// v -> w v^a + (1 - w) v^b, which is increasing and keeps 0 and 1; a and b lie within 4 and 1/4
// at severity 5, within 4^(s/5) and its inverse at severity s. The draws are those of 500
// consecutive images (the table in corrupt.cpp), so that a batch can be all of one curve.
Effect tone(const EffectParams& setting) {
  const double most = std::pow(4.0, setting.severity / 5.0);
  return [most, values = setting.size.values()](const uint8_t* in, Draw& draw, uint8_t* out) {
    const double a = draw_gamma(most, draw), b = draw_gamma(most, draw), w = draw.uniform();
    std::array<uint8_t, 256> curve;
    for (int v = 0; v < 256; ++v) {
      const double tone = v / 255.0;
      const double bent = w * std::pow(tone, a) + (1 - w) * std::pow(tone, b);
      curve[v] = static_cast<uint8_t>(std::lround(255 * bent));
    }
    for (int64_t i = 0; i < values; ++i) out[i] = curve[in[i]];
  };
}

}  // namespace qact::corrupt
