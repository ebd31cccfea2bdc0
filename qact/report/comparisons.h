// The curves of one chart: those that answer one question together, as in the paper's figures.
#pragma once

#include <string>
#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

struct Comparison {
  std::string name, title;  // the name is part of file names
  std::vector<const Curve*> curves;
  const char* note = "";  // a sentence above the charts
};

// Activations and inference modes first, in batches of the usual size (that of the curve with most
// severities; of equal ones the largest); then those in other batches, methods of adaptation in
// batches of theirs, the streams other than single, losses and classifiers, where there are
// several. None without curves.
std::vector<Comparison> comparisons(const Group& group);

}  // namespace qact::report
