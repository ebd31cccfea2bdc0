// Streams: which test images share a batch, and in which order they arrive.
//
//   single      one corruption at a time, in the order of the dataset
//   mixed       all corruptions of one severity in one stream, shuffled. Each test image is in it
//               once per corruption: a corruption's scores are of the same images as in single
//   correlated  one corruption at a time, in an order in which neighbours have the same label, as
//               in NOTE (Gong et al. 2022)
//
// The order depends on the seed, on the labels and on the number of images and corruptions; it is
// the same for every severity, and in correlated for every corruption.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/data/split.h"
#include "qact/eval/test_images.h"

namespace qact::eval {

std::vector<std::string> stream_names();

// A random order of corruption x image, image i of corruption c as c * images + i.
std::vector<int64_t> mixed_order(int64_t corruptions, int64_t images, uint64_t seed);

// Time has as many slots as there are classes. Each class's images are dealt to them by shares from
// Dirichlet(0.1); a slot with its part of all images takes no more. Within a slot one class follows
// the other, in random order.
std::vector<int64_t> correlated_order(const std::vector<int64_t>& labels, uint64_t seed);

struct ImageStream {
  data::Split images;  // in the order in which they arrive
  // For each corruption, where the images of the test set are, in its order.
  struct Part {
    std::string corruption;
    std::vector<int64_t> positions;
  };
  std::vector<Part> parts;

  std::vector<int64_t> labels_of(const Part& part) const;
};

// `corruptions`: one, unless the stream is mixed. Severity 0: {"none"}.
ImageStream open_stream(const TestImages& images, const std::string& stream,
                        const std::vector<std::string>& corruptions, int severity, uint64_t seed);

}  // namespace qact::eval
