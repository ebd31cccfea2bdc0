#include "qact/data/split.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qact/base/fail.h"

namespace qact::data {

using base::fail;

const char* to_string(SplitName name) { return name == SplitName::train ? "train" : "test"; }

Split Split::slice(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first + count > this->count()) {
    fail("split", "expected images within 0 to ", this->count(), ", got ", first, " to ",
         first + count);
  }
  Split out = *this;
  out.pixels = pixels.subspan(first * size.values(), count * size.values());
  out.labels.assign(labels.begin() + first, labels.begin() + first + count);
  return out;
}

Split make_split(image::Size size, int classes, std::vector<uint8_t> pixels,
                 std::vector<int64_t> labels) {
  const auto buffer = std::make_shared<const std::vector<uint8_t>>(std::move(pixels));
  Split out{size, classes, *buffer, std::move(labels), buffer};
  check_labels(out);
  return out;
}

std::vector<int64_t> indices_of(const std::vector<std::string>& names,
                                const std::vector<std::string>& known) {
  std::vector<int64_t> out;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    out.push_back(found == known.end() ? -1 : found - known.begin());
  }
  return out;
}

image::Size checked_size(int64_t height, int64_t width, int channels) {
  constexpr int64_t kMaxSide = 1 << 16;
  if (height < 1 || height > kMaxSide || width < 1 || width > kMaxSide) {
    fail("split", "expected images of 1 to ", kMaxSide, " pixels a side, got ", height, "x", width);
  }
  return {static_cast<int>(height), static_cast<int>(width), channels};
}

void check_labels(const Split& split) {
  const auto values = static_cast<int64_t>(split.pixels.size());
  if (split.count() * split.size.values() != values) {
    fail("labels", "expected as many labels as images, got ", split.count(), " labels and ",
         values / split.size.values(), " images");
  }
  for (int64_t i = 0; i < split.count(); ++i) {
    if (split.labels[i] < 0 || split.labels[i] >= split.classes) {
      fail("labels", "expected labels of 0 to ", split.classes - 1, ", got ", split.labels[i],
           " at image ", i);
    }
  }
}

int class_count(const std::vector<int64_t>& labels) {
  constexpr int64_t kMaxClasses = 1 << 20;
  int64_t largest = 0;
  for (const int64_t label : labels) largest = std::max(largest, label);
  return static_cast<int>(std::min(largest + 1, kMaxClasses));
}

Moments moments_of(const Split& split) {
  const int channels = split.size.channels;
  // From exact counts of every byte, so that no sum of squares loses digits.
  std::vector<std::array<int64_t, 256>> histogram(channels);
  for (auto& counts : histogram) counts.fill(0);
  for (size_t i = 0; i < split.pixels.size(); i += channels) {
    for (int c = 0; c < channels; ++c) ++histogram[c][split.pixels[i + c]];
  }
  const double pixels = static_cast<double>(split.pixels.size()) / channels;
  Moments out;
  for (const auto& counts : histogram) {
    double mean = 0, variance = 0;
    for (int v = 0; v < 256; ++v) mean += v / 255.0 * static_cast<double>(counts[v]) / pixels;
    for (int v = 0; v < 256; ++v) {
      variance += (v / 255.0 - mean) * (v / 255.0 - mean) * static_cast<double>(counts[v]) / pixels;
    }
    out.mean.push_back(mean);
    out.std.push_back(std::sqrt(variance));
  }
  return out;
}

}  // namespace qact::data
