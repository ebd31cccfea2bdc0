// The watershed loss: cross-entropy over the distances to the nearest sample of each class. Only
// samples count that a flood from a few seeds has labelled correctly (watershed_labels.h).
//
//   loss = mean_i -log( exp(-d(i, y_i)) / sum_l exp(-d(i, l)) ),
//   d(i, l) = |e_i - e_j|, j the nearest sample to i, never i itself, among those whose label
//   and flooded label are both l.
//
// A class without such a sample is left out of i's sum. If i's own class has none, i is left out of
// the mean. The gradient reaches e_i and e_j; the choice of j is constant.
//
// The flood runs on the CPU, so that every device gives the same labels. On another device the
// distances are computed there and copied once: one synchronisation a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/base/random.h"

namespace qact::losses {

at::Tensor watershed(const at::Tensor& embedding, const at::Tensor& labels, int64_t seeds,
                     base::Random& random);

}  // namespace qact::losses
