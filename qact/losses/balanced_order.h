// Batches that hold several samples of each of several classes, for the losses that compare
// samples with each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qact/base/random.h"

namespace qact::losses {

// An order of sample indices that, cut into batches of classes_per_batch * samples_per_class,
// gives each batch that many distinct classes with that many distinct samples each. As many
// whole batches as the samples would fill, at least one; a sample may come again in another
// batch, and a few may be missing. Labels are whatever numbers name the classes. Throws where
// there are too few classes, or samples of one.
std::vector<int64_t> balanced_order(std::span<const int64_t> labels, int64_t classes_per_batch,
                                    int64_t samples_per_class, base::Random random);

}  // namespace qact::losses
