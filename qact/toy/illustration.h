// Rows that illustrate the two problems, of the kinds toy_points and toy_map.
#pragma once

#include "qact/base/random.h"
#include "qact/results/row.h"

namespace qact::toy {

// A few contexts of circle: {angle, points: [[x, y, label], ...]} each.
results::Rows circle_illustration(base::Random& random);

// The map of one feature in a few contexts of monotone: {values: [...]} each, at equidistant points
// of [0, 1].
results::Rows monotone_illustration(base::Random& random);

}  // namespace qact::toy
