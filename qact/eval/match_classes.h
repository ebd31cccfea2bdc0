// The classes of images as a model numbers them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/data/split.h"

namespace qact::eval {

// What a model was trained to tell apart.
struct ModelClasses {
  int64_t count = 0;
  std::vector<std::string> names;  // empty: none
};

// The same images with the model's labels: by name where both have names, else by position, in
// which case both have as many classes. Throws where images are of classes that the model does not
// know, and names them; `source` is where they are from.
data::Split with_labels_of(const ModelClasses& model, data::Split images,
                           const std::string& source);

// Those of the model's classes that no image is of, as a remark for the user; else empty.
std::string missing_classes(const ModelClasses& model, const data::Split& images,
                            const std::string& source);

}  // namespace qact::eval
