// Increasing tone curves, random and fixed: not standard corruptions, but those that change the
// moments of pixels and not their ranks.
#include <array>
#include <cmath>

#include "qact/corrupt/effects.h"

namespace qact::corrupt {
namespace {

// A gamma, or one over it, from sqrt(max) to max.
double draw_gamma(double max, Rng& rng) {
  const double sign = rng.coin() ? 1 : -1;
  return std::pow(max, sign * rng.uniform(0.5, 1));
}

using ToneCurve = std::array<uint8_t, 256>;

template <class Tone>
ToneCurve tabulate(const Tone& tone) {
  ToneCurve curve;
  for (int v = 0; v < 256; ++v) {
    curve[v] = static_cast<uint8_t>(std::lround(255 * tone(v / 255.0)));
  }
  return curve;
}

void apply(const ToneCurve& curve, const uint8_t* in, int64_t values, uint8_t* out) {
  for (int64_t i = 0; i < values; ++i) out[i] = curve[in[i]];
}

}  // namespace

// v -> w v^a + (1 - w) v^b, which is increasing and keeps 0 and 1; a and b lie within 4 and 1/4
// at severity 5, within 4^(s/5) and its inverse at severity s. 500 consecutive images share a curve
// (images_per_draw in corrupt.cpp), so that a whole batch can have the same.
Effect tone(const EffectParams& params) {
  const double max_gamma = std::pow(4.0, params.severity / 5.0);
  return [max_gamma, values = params.size.values()](const uint8_t* in, Rng& rng, uint8_t* out) {
    const double a = draw_gamma(max_gamma, rng), b = draw_gamma(max_gamma, rng), w = rng.uniform();
    const auto bent = [&](double v) { return w * std::pow(v, a) + (1 - w) * std::pow(v, b); };
    apply(tabulate(bent), in, values, out);
  };
}

// v -> v^4 at every severity: the darkest curve of severity 5 above.
Effect gamma4(const EffectParams& params) {
  return [curve = tabulate([](double v) { return std::pow(v, 4); }), values = params.size.values()](
             const uint8_t* in, Rng&, uint8_t* out) { apply(curve, in, values, out); };
}

}  // namespace qact::corrupt
