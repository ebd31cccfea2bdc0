// Matches the classes of a dataset with those of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qact/data/split.h"

namespace qact::eval {

// The classes that a model predicts.
struct ModelClasses {
  int64_t count = 0;
  std::vector<std::string> names;  // empty: none
};

// The same images with the model's labels. Classes are matched by name where both have names, else
// by number, and then both must have as many. Throws where images are of a class that the model
// does not have, and names it; `source` is where the images are from, for messages.
data::Split with_labels_of(const ModelClasses& model, data::Split images,
                           const std::string& source);

// A warning that names the model's classes without images; empty where there are none.
std::string missing_classes(const ModelClasses& model, const data::Split& images,
                            const std::string& source);

}  // namespace qact::eval
