// The watershed loss: cross-entropy over the distances to the nearest sample of each class
// that a flood from a few seeds has labelled correctly.
//
//   loss = mean_i -log( exp(-d(i, y_i)) / sum_l exp(-d(i, l)) ),
//   d(i, l) = |e_i - e_j|, j the nearest sample to i, never i itself, among those whose label
//   and flooded label are both l.
//
// Classes without such a sample drop out of i's sum; where it is i's own, i drops out of the
// mean. The gradient reaches e_i and e_j; who is nearest is a constant.
//
// The flood is a loop of plain code on the CPU, so that every device gives the same labels. A
// batch on another device has its distances computed there and copied once: one point of
// synchronisation a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "qact/base/random.h"

namespace qact::losses {

at::Tensor watershed(const at::Tensor& embedding, const at::Tensor& labels, int64_t seeds,
                     base::Random& random);

}  // namespace qact::losses
