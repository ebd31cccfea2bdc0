// Custom datasets: a folder with train/CLASS/*.png and test/CLASS/*.png (or val/; JPEG, too), or
// with train_images.npy, train_labels.npy, test_images.npy and test_labels.npy, or with MNIST's
// four idx files.
#pragma once

#include "qact/data/dataset.h"

namespace qact::data {

// Reads both splits, for the sizes, the classes and the normalisation.
Dataset open_custom(const fs::path& folder, const Preprocessing& preprocessing);

}  // namespace qact::data
