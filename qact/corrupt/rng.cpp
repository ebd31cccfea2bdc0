#include "qact/corrupt/rng.h"

#include <cmath>

namespace qact::corrupt {
namespace {

Ziggurat make_ziggurat() {
  constexpr double kArea = 0.00492867323399;
  Ziggurat z;
  const auto height = [](double x) { return std::exp(-0.5 * x * x); };
  z.edge[0] = kArea / height(Ziggurat::kTail);
  z.edge[1] = Ziggurat::kTail;
  for (int i = 1; i < 255; ++i) {
    z.edge[i + 1] = std::sqrt(-2 * std::log(height(z.edge[i]) + kArea / z.edge[i]));
  }
  z.edge[256] = 0;
  for (int i = 0; i <= 256; ++i) z.height[i] = height(z.edge[i]);
  return z;
}

}  // namespace

const Ziggurat& ziggurat() {
  static const Ziggurat table = make_ziggurat();
  return table;
}

Rng::Rng(uint64_t seed, std::string_view corruption, int severity, int64_t image)
    : random_(seed, base::corruption_stream(corruption, severity), image), ziggurat_(ziggurat()) {}

// The rare case of normal(): x lies outside the rectangle under the curve.
double Rng::normal_beyond(int layer, double x) {
  if (layer == 0) {
    double beyond, y;
    do {
      beyond = -std::log(1 - uniform()) / Ziggurat::kTail;
      y = -std::log(1 - uniform());
    } while (2 * y < beyond * beyond);
    return x < 0 ? -Ziggurat::kTail - beyond : Ziggurat::kTail + beyond;
  }
  const double low = ziggurat_.height[layer], high = ziggurat_.height[layer + 1];
  return low + uniform() * (high - low) < std::exp(-0.5 * x * x) ? x : normal();
}

}  // namespace qact::corrupt
