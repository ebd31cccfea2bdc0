// Class-balanced batches: several samples of each of several classes, for losses that compare
// samples with each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qact/base/random.h"

namespace qact::losses {

// An order of sample indices. Cut into batches of classes_per_batch * samples_per_class, it gives
// each batch that many distinct classes with that many distinct samples each, one of each class in
// turn, so that a contiguous share of a batch is balanced as well as it can be. There are as many
// batches as the samples would fill, at least one. A sample may come again in another batch, and a
// few may be missing. Labels may be any integers. Throws where there are too few classes, or too
// few samples of a class.
std::vector<int64_t> balanced_order(std::span<const int64_t> labels, int64_t classes_per_batch,
                                    int64_t samples_per_class, base::Random random);

}  // namespace qact::losses
