// What both toy sections show: a table of scores, and histograms of the accuracy in each context.
#pragma once

#include <string>
#include <vector>

#include "qact/report/sections.h"
#include "qact/results/toy.h"

namespace qact::report {

// One row per network: the accuracy's mean over contexts and seeds, its deviation between seeds,
// the worst context, and the Bayes optimum.
Table toy_table(const std::vector<results::ToySummary>& summaries);

// Histograms of the accuracy per context, one row per network, over a common axis.
Chart toy_histograms(const std::string& name, const std::vector<results::ToyScore>& scores);

}  // namespace qact::report
