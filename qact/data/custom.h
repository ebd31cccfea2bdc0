// A folder of one's own as a dataset: images in a folder per class below train/ and test/
// (or val/), or pairs of train_images.npy, train_labels.npy, test_images.npy, test_labels.npy,
// or MNIST's four idx files.
#pragma once

#include "qact/data/dataset.h"

namespace qact::data {

// Reads the training part, for the normalisation.
Opened describe_custom(const fs::path& folder, const Fit& fit);

}  // namespace qact::data
