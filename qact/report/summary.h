// The summary of an evaluation, for the top of the page and for the terminal.
#pragma once

#include <string>
#include <vector>

#include "qact/report/curves.h"
#include "qact/report/sections.h"

namespace qact::report {

// One row per curve; metrics at the highest severity.
Table summary_table(const Group& group);

// Sentences that compare QAct, with batch statistics, to ReLU with running and with batch
// statistics. Empty where there is no such QAct network.
std::vector<std::string> verdict(const Group& group);

}  // namespace qact::report
