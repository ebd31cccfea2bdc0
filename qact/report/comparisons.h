// The curves of one chart: those that answer one question together, as in the paper's figures.
#pragma once

#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

struct Comparison {
  const char *name, *title;  // the name is part of file names
  std::vector<const Curve*> curves;
};

// Activations and inference modes first; then losses and classifiers, where there are several.
std::vector<Comparison> comparisons(const Group& group);

}  // namespace qact::report
