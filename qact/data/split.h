// Images with labels, once read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::data {

enum class Part { kTrain, kTest };

// What to read of a dataset. A clean one has the corruption "none" at severity 0.
struct Which {
  Part part = Part::kTrain;
  std::string corruption = "none";
  int severity = 0;
};

// Images of one size, channels last, and their labels. The pixels are a mapped file or a
// buffer, which `keep` keeps alive; a copy of a split shares them.
struct Split {
  image::Size size;
  int classes = 0;
  std::span<const uint8_t> pixels;
  std::vector<int64_t> labels;
  std::shared_ptr<const void> keep;
  std::vector<std::string> class_names = {};  // one for each class; empty: none

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  const uint8_t* image(int64_t index) const { return pixels.data() + index * size.values(); }
  // `count` images from `first` on.
  Split slice(int64_t first, int64_t count) const;
};

// A split whose pixels are its own buffer.
Split make_split(image::Size size, int classes, std::vector<uint8_t> pixels,
                 std::vector<int64_t> labels);

// The place of each of `names` among `known`; -1 where it is none of them.
std::vector<int64_t> places_of(const std::vector<std::string>& names,
                               const std::vector<std::string>& known);

// What every reader checks about what it read.

// Sides that an image may have.
image::Size checked_size(int64_t height, int64_t width, int channels);

// As many labels as images, each a class.
void check_labels(const Split& split);

// One more than the largest label.
int classes_of(const std::vector<int64_t>& labels);

// Per channel, of pixels in [0, 1].
struct Moments {
  std::vector<double> mean, std;
};
Moments moments_of(const Split& split);

}  // namespace qact::data
