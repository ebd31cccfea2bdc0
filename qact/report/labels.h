// Names and looks of curves.
#pragma once

#include <tuple>
#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

// QAct first, then by activation; of one network, batch statistics first.
std::tuple<int, std::string, std::string, std::string, std::string, int> order_of(
    const Setting& setting);

// Labels that name what differs between curves, or from what is usual. One hue for each
// activation, one colour for each network and classifier; the dash is the mode's.
void name_and_colour(Group& group);

}  // namespace qact::report
