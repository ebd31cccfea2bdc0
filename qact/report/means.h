// The means that the page shows, for other programs.
#pragma once

#include "qact/results/row.h"

namespace qact::report {

// A list with an entry for each curve and kind of corruption ("benchmark": those that curves are
// compared by; "tone"): its label and setting, its seeds, and for each metric {"mean": {SEVERITY:
// ...}, "deviation": {...}, "seeds": {...}, "fall": {"from", "to", "mean", "deviation", "seeds"}},
// the last from its lowest severity to its highest. Deviations are those between seeds.
results::Row means(const results::Rows& rows);

}  // namespace qact::report
