// The summary of an evaluation, for the top of the page and for the terminal.
#pragma once

#include <string>
#include <vector>

#include "qact/report/curves.h"
#include "qact/report/sections.h"

namespace qact::report {

// One row per curve; metrics at the highest severity.
Table summary_table(const Group& group);

// Sentences for the terminal: which network to take for what arrives (choices.h), then each QAct
// network held against ReLU. The page has the first as a table.
std::vector<std::string> verdict(const Group& group);

}  // namespace qact::report
