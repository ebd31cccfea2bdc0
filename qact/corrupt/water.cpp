#include "qact/corrupt/water.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "qact/corrupt/filter.h"

namespace qact::corrupt {
namespace {

constexpr float kNinth = 1.0f / 9;
constexpr Tap kBox[] = {{-1, -1, kNinth}, {-1, 0, kNinth}, {-1, 1, kNinth},
                        {0, -1, kNinth},  {0, 0, kNinth},  {0, 1, kNinth},
                        {1, -1, kNinth},  {1, 0, kNinth},  {1, 1, kNinth}};
constexpr Tap kEmboss[] = {{-1, -1, -2}, {-1, 0, -1}, {0, -1, -1}, {0, 0, 1},
                           {0, 1, 1},    {1, 0, 1},   {1, 1, 2}};

std::vector<float> filtered(const std::vector<float>& in, image::Size size,
                            std::span<const Tap> taps) {
  std::vector<float> out(in.size());
  correlate(in.data(), size, Border::reflect101, taps, out.data());
  return out;
}

enum class Edge : uint8_t { none, weak, strong };

struct Gradient {
  int x, y;
  int magnitude() const { return std::abs(x) + std::abs(y); }
};

Gradient sobel(const std::vector<uint8_t>& in, image::Size size, int y, int x) {
  const auto at = [&](int dy, int dx) -> int {
    return in[std::clamp(y + dy, 0, size.height - 1) * size.width +
              std::clamp(x + dx, 0, size.width - 1)];
  };
  return {at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1),
          at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)};
}

// Non-maximum suppression along the gradient's direction, one of eight, with the tangent of 22.5
// degrees in 15 fractional bits.
template <class Magnitude>
bool is_ridge(const Gradient& g, int y, int x, const Magnitude& magnitude) {
  constexpr int64_t kTangent = 13573;
  const int64_t across = std::abs(g.x), down = int64_t{std::abs(g.y)} << 15;
  const int m = g.magnitude();
  if (down < across * kTangent) return m > magnitude(y, x - 1) && m >= magnitude(y, x + 1);
  if (down > across * kTangent + (across << 16)) {
    return m > magnitude(y - 1, x) && m >= magnitude(y + 1, x);
  }
  const int side = (g.x ^ g.y) < 0 ? -1 : 1;
  return m > magnitude(y - 1, x - side) && m > magnitude(y + 1, x + side);
}

// Hysteresis: weak edges that touch a strong one become strong.
void follow_edges(std::vector<Edge>& edges, image::Size size) {
  std::vector<int> open;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] == Edge::strong) open.push_back(static_cast<int>(i));
  }
  while (!open.empty()) {
    const int i = open.back(), y = i / size.width, x = i % size.width;
    open.pop_back();
    for (int v = std::max(y - 1, 0); v <= std::min(y + 1, size.height - 1); ++v) {
      for (int u = std::max(x - 1, 0); u <= std::min(x + 1, size.width - 1); ++u) {
        const int j = v * size.width + u;
        if (edges[j] != Edge::weak) continue;
        edges[j] = Edge::strong;
        open.push_back(j);
      }
    }
  }
}

}  // namespace

std::vector<uint8_t> canny(const std::vector<uint8_t>& in, image::Size size, int low, int high) {
  std::vector<Gradient> gradients(in.size());
  for (int y = 0, i = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x, ++i) gradients[i] = sobel(in, size, y, x);
  }
  const auto magnitude = [&](int y, int x) {
    const bool inside = y >= 0 && x >= 0 && y < size.height && x < size.width;
    return inside ? gradients[y * size.width + x].magnitude() : 0;
  };
  std::vector<Edge> edges(in.size(), Edge::none);
  for (int y = 0, i = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x, ++i) {
      const int m = gradients[i].magnitude();
      if (m <= low || !is_ridge(gradients[i], y, x, magnitude)) continue;
      edges[i] = m > high ? Edge::strong : Edge::weak;
    }
  }
  follow_edges(edges, size);
  std::vector<uint8_t> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = edges[i] == Edge::strong ? 255 : 0;
  return out;
}

// The 5 x 5 chamfer distance: steps to the side, along the diagonal and of a knight cost 1, 1.4 and
// 2.1969, in 16 fractional bits; one pass down, one up.
std::vector<float> distance_transform(const std::vector<uint8_t>& in, image::Size size) {
  constexpr int kSide = 65536, kDiagonal = 91750, kKnight = 143976, kFar = 1 << 29;
  constexpr int kMoves[8][3] = {{-2, -1, kKnight},   {-2, 1, kKnight}, {-1, -2, kKnight},
                                {-1, -1, kDiagonal}, {-1, 0, kSide},   {-1, 1, kDiagonal},
                                {-1, 2, kKnight},    {0, -1, kSide}};
  const int width = size.width + 4;  // two far pixels around
  std::vector<int> distance((size.height + 4) * width, kFar);
  for (const int sign : {1, -1}) {
    for (int k = 0; k < size.height; ++k) {
      const int y = sign > 0 ? k : size.height - 1 - k;
      for (int l = 0; l < size.width; ++l) {
        const int x = sign > 0 ? l : size.width - 1 - l;
        int* here = &distance[(y + 2) * width + x + 2];
        int least = in[y * size.width + x] == 0 ? 0 : *here;
        for (const auto& move : kMoves) {
          least = std::min(least, here[sign * (move[0] * width + move[1])] + move[2]);
        }
        *here = least;
      }
    }
  }
  std::vector<float> out;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      out.push_back(static_cast<float>(distance[(y + 2) * width + x + 2]) / kSide);
    }
  }
  return out;
}

std::vector<uint8_t> equalise_histogram(const std::vector<uint8_t>& in) {
  std::array<int, 256> count{};
  for (const uint8_t v : in) ++count[v];
  const int first = static_cast<int>(
      std::find_if(count.begin(), count.end(), [](int n) { return n > 0; }) - count.begin());
  const int others = static_cast<int>(in.size()) - count[first];
  if (others == 0) return in;
  std::array<uint8_t, 256> map{};
  const float scale = 255.0f / static_cast<float>(others);
  int sum = 0;
  for (int v = first + 1; v < 256; ++v) {
    sum += count[v];
    map[v] = static_cast<uint8_t>(std::nearbyint(static_cast<float>(sum) * scale));
  }
  std::vector<uint8_t> out;
  for (const uint8_t v : in) out.push_back(map[v]);
  return out;
}

std::vector<float> water_mask(const std::vector<double>& layer, image::Size size) {
  std::vector<uint8_t> bytes(layer.size());
  for (size_t i = 0; i < layer.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<int>(layer[i] * 255));
  }
  std::vector<uint8_t> edges = canny(bytes, size, 50, 150);
  for (uint8_t& value : edges) value = 255 - value;
  std::vector<float> light = distance_transform(edges, size);
  for (float& value : light) value = std::min(value, 20.0f);
  light = filtered(light, size, kBox);
  const std::vector<uint8_t> equal = equalise_histogram({light.begin(), light.end()});
  light = filtered({equal.begin(), equal.end()}, size, kEmboss);
  for (float& value : light) value = std::clamp(value, 0.0f, 255.0f);
  light = filtered(light, size, kBox);
  float most = 0;
  for (size_t i = 0; i < light.size(); ++i) {
    light[i] = std::nearbyint(light[i]) * static_cast<float>(bytes[i]);
    most = std::max(most, light[i]);
  }
  for (float& value : light) value = most > 0 ? value / most : 0;
  return light;
}

}  // namespace qact::corrupt
