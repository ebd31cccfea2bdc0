#include "qact/corrupt/plasma.h"

#include <algorithm>
#include <cstdint>

namespace qact::corrupt {

std::vector<float> plasma(int side, double decay, Rng& rng) {
  std::vector<float> height(int64_t{side} * side);
  const int mask = side - 1;
  const auto at = [&](int y, int x) -> float& {
    return height[int64_t{y & mask} * side + (x & mask)];
  };
  double width = 100;
  for (int step = side; step >= 2; step /= 2, width /= decay) {
    const int half = step / 2;
    const float amplitude = static_cast<float>(width * width);
    const auto displaced = [&](float sum) {
      return sum / 4 + amplitude * static_cast<float>(2 * rng.uniform() - 1);
    };
    for (int y = 0; y < side; y += step) {
      for (int x = 0; x < side; x += step) {
        at(y + half, x + half) =
            displaced(at(y, x) + at(y, x + step) + at(y + step, x) + at(y + step, x + step));
      }
    }
    for (int y = 0; y < side; y += step) {
      for (int x = 0; x < side; x += step) {
        const float corner = at(y, x), centre = at(y + half, x + half);
        at(y, x + half) = displaced(centre + at(y - half, x + half) + corner + at(y, x + step));
        at(y + half, x) = displaced(centre + at(y + half, x - half) + corner + at(y + step, x));
      }
    }
  }
  const auto [low, high] = std::minmax_element(height.begin(), height.end());
  const float least = *low, range = *high - *low;
  for (float& value : height) value = (value - least) / range;
  return height;
}

}  // namespace qact::corrupt
