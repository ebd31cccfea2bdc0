// What an evaluation comes to: for the top of the page and for the terminal.
#pragma once

#include <string>
#include <vector>

#include "qact/report/curves.h"
#include "qact/report/section.h"

namespace qact::report {

// One line per curve; metrics at the highest severity.
Table summary_table(const Group& group);

// What QAct wins over, or loses to: plain ReLU, and ReLU with batch statistics. Empty where
// there is no QAct network with batch statistics.
std::vector<std::string> verdict(const Group& group);

}  // namespace qact::report
