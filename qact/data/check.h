// Whether a dataset is what its table says.
#pragma once

#include <string>
#include <vector>

#include "qact/data/dataset.h"

namespace qact::data {

struct Finding {
  std::string what, expected, found;
  bool good = false;
};

// Counts, sizes, class balance, and mean and deviation where they are known. A corrupted set
// is checked in every corruption and severity.
std::vector<Finding> check(const Opened& opened);

// Throws unless the parts have their images: the quick look after a fetch.
void expect_counts(const Dataset& dataset, const fs::path& folder);

}  // namespace qact::data
