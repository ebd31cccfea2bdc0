// Curves that answer one question together, as the paper's figures do: the rest would hide it.
#pragma once

#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

struct Comparison {
  const char *name, *title;  // the name is a part of file names
  std::vector<const Curve*> curves;
};

// Activations and ways of inference first; losses and classifiers where there are several.
std::vector<Comparison> comparisons(const Group& group);

}  // namespace qact::report
