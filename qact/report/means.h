// The means that the page shows, as JSON for other programs.
#pragma once

#include "qact/results/row.h"

namespace qact::report {

// A list with an entry for each curve and kind of corruption ("benchmark": those by which curves
// are compared; "tone"; "gamma4"): its label, setting and seeds, and for each metric {"mean":
// {SEVERITY:
// ...}, "deviation": {...}, "seeds": {...}, "drop": {"from", "to", "mean", "deviation", "seeds"}},
// the last from its lowest severity to its highest. Deviations are between seeds.
results::Row means(const results::Rows& rows);

}  // namespace qact::report
