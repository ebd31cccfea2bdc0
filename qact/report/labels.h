// Labels, colours and dashes of curves.
#pragma once

#include <tuple>
#include <vector>

#include "qact/report/curves.h"

namespace qact::report {

// The sort key of curves: by stream; then QAct first and other activations after it; of one
// network, batch statistics first.
using SortKey = std::tuple<size_t, size_t, std::string, std::string, std::string, size_t, size_t>;
SortKey order_of(const Setting& setting);

// Sets labels, which name what differs between curves or from the usual, colours (one hue for each
// activation; one colour for each network, classifier and method of adaptation, the same in every
// stream) and dashes (by mode).
void name_and_colour(Group& group);

// A field that varies, as part of a label: "batches of 500", "1000 images".
std::string in_words(const results::Field& field);

// As people write them: "QAct" for qact, "batch statistics" for batch.
std::string activation_name(const std::string& activation);
std::string mode_name(const Setting& setting);

}  // namespace qact::report
