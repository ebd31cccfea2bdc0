// One factory per dataset, each defined in the source file of its name (the -c ones in
// corrupted.cpp). datasets() in dataset.cpp lists them all.
#pragma once

#include "qact/data/dataset.h"

namespace qact::data {

DatasetInfo mnist();
DatasetInfo mnist_small();
DatasetInfo fashion_mnist();
DatasetInfo cifar10();
DatasetInfo cifar100();
DatasetInfo tiny_imagenet();
DatasetInfo cifar10_c();
DatasetInfo cifar100_c();
DatasetInfo tiny_imagenet_c();
DatasetInfo mnist_c();

}  // namespace qact::data
