// The paper's own figures, to stand beside ours: drop in accuracy, percentage points.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace qact::report {

// Pairs in the order 0-1, 0-2, ..., 0-5, 1-2, ..., 4-5; fewer where it gives only the first.
struct PaperDrop {
  const char *dataset, *network;
  std::vector<double> drops;
};

// Its tables 1 to 3, for the dataset that a row names; empty where it gives none.
std::vector<PaperDrop> paper_drops(const std::string& dataset);

}  // namespace qact::report
