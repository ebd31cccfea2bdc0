// Which network to take for what arrives at test time, whatever its activation.
#pragma once

#include <string>
#include <vector>

#include "qact/report/curves.h"
#include "qact/report/sections.h"

namespace qact::report {

// By the accuracy at the highest severity, a mean over `corruptions`.
struct Choice {
  std::string arrives;  // "batches of 500 of one corruption"
  std::vector<std::string> corruptions;
  const Curve* best;
  const Curve* next;  // the best one of another activation
};

// For each stream and batch size that curves are of, then for single images; once by the group's
// corruptions and, where it was evaluated, once by gamma4. Only where there are two activations to
// choose from, among the usual curves (Group::is_usual).
std::vector<Choice> choices(const Group& group);

Table choices_table(const Group& group, const std::vector<Choice>& choices);
// The same as sentences.
std::vector<std::string> choices_text(const Group& group, const std::vector<Choice>& choices);

// Plain ReLU, ReLU with batch statistics and QAct with batch statistics: in the placement split, if
// there is one, and of the evaluation with most severities, seeds and images in a batch. All three
// are of the same images and have means over the group's corruptions; empty where there are no such
// three.
std::vector<const Curve*> headline(const Group& group);

}  // namespace qact::report
