// Labels, colours and dashes of curves.
#pragma once

#include <tuple>
#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

// The sort key of curves: QAct first, then by activation; of one network, batch statistics first.
std::tuple<int, std::string, std::string, std::string, std::string, int> order_of(
    const Setting& setting);

// Sets labels, which name what differs between curves or from the usual, colours (one hue for each
// activation, one colour for each network and classifier) and dashes (by mode).
void name_and_colour(Group& group);

// As people write them: "QAct" for qact, "batch statistics" for batch.
std::string activation_name(const std::string& activation);
std::string mode_name(const Setting& setting);

}  // namespace qact::report
