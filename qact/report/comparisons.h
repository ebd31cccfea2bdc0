// The curves of one chart: those that answer one question together, as in the paper's figures.
#pragma once

#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

struct Comparison {
  const char *name, *title;  // the name is part of file names
  std::vector<const Curve*> curves;
  const char* note = "";  // a sentence above the charts
};

// Activations and inference modes first; then methods of adaptation, the streams other than single,
// losses and classifiers, where there are several. None without curves.
std::vector<Comparison> comparisons(const Group& group);

}  // namespace qact::report
