// Images with labels: one split of a dataset, in memory or mapped from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qact/image/image.h"

namespace qact::data {

enum class SplitName { train, test };
const char* to_string(SplitName name);  // "train", "test"

// Which images of a dataset to read. Clean images have the corruption "none" and severity 0.
struct SplitId {
  SplitName split = SplitName::train;
  std::string corruption = "none";
  int severity = 0;
};

// Images of one size (NHWC) and their labels. The pixels lie in a mapped file or a buffer, which
// `owner` keeps alive; copies of a split share it.
struct Split {
  image::Size size;
  int classes = 0;
  std::span<const uint8_t> pixels;
  std::vector<int64_t> labels;
  std::shared_ptr<const void> owner;
  std::vector<std::string> class_names = {};  // one for each class; empty: none

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  const uint8_t* image(int64_t index) const { return pixels.data() + index * size.values(); }
  // `count` images from `first` on.
  Split slice(int64_t first, int64_t count) const;
};

// A split that owns its pixels.
Split make_split(image::Size size, int classes, std::vector<uint8_t> pixels,
                 std::vector<int64_t> labels);

// The index of each of `names` in `known`; -1 where it is not there.
std::vector<int64_t> indices_of(const std::vector<std::string>& names,
                                const std::vector<std::string>& known);

// Throws unless the sides are between 1 and 65536 pixels.
image::Size checked_size(int64_t height, int64_t width, int channels);

// Throws unless there are as many labels as images, each in [0, classes).
void check_labels(const Split& split);

// One more than the largest label.
int class_count(const std::vector<int64_t>& labels);

// Mean and standard deviation of each channel, of pixels in [0, 1].
struct Moments {
  std::vector<double> mean, std;
};
Moments moments_of(const Split& split);

}  // namespace qact::data
