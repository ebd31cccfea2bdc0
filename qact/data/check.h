// Compares a dataset on disk with its DatasetInfo.
#pragma once

#include <string>
#include <vector>

#include "qact/data/dataset.h"

namespace qact::data {

struct Finding {
  std::string what, expected, found;
  bool good = false;
};

// Counts, sizes, class balance, and mean and standard deviation where they are known. A corrupted
// dataset is checked at every corruption and severity.
std::vector<Finding> check(const Dataset& dataset);

// Throws unless each split has its number of images: the quick check after a fetch.
void expect_counts(const DatasetInfo& info, const fs::path& folder);

}  // namespace qact::data
