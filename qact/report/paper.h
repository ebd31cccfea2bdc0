// The paper's published numbers, to show beside ours: drop in accuracy, percentage points.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace qact::report {

// `drops` between severities 0-1, 0-2, ..., 0-5, 1-2, ..., 4-5; only the first 5 where the paper
// has no others.
struct PaperDrop {
  const char *dataset, *network;
  std::vector<double> drops;
};

// From tables 1 to 3; empty for datasets that the paper does not have.
std::vector<PaperDrop> paper_drops(const std::string& dataset);

}  // namespace qact::report
