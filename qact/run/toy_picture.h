// Rows that picture the two problems. kind: toy_points, toy_maps.
#pragma once

#include "qact/core/random.h"
#include "qact/results/row.h"

namespace qact::run {

// A few contexts of circle: {angle, points: [[x, y, label], ...]} each.
results::Rows circle_picture(core::Random& random);

// The maps of one feature in a few contexts of monotone: {values: [...]} each, at
// equidistant points of [0, 1].
results::Rows monotone_picture(core::Random& random);

}  // namespace qact::run
