// The datasets, each in a file of its own name, gathered by table.cpp.
#pragma once

#include "qact/data/dataset.h"

namespace qact::data {

Dataset mnist();
Dataset mnist_small();
Dataset fashion_mnist();
Dataset cifar10();
Dataset cifar100();
Dataset tiny_imagenet();
Dataset cifar10_c();
Dataset cifar100_c();
Dataset tiny_imagenet_c();
Dataset mnist_c();

// The 15 corruptions of the benchmark and the 4 held out for tuning, in the published order.
std::vector<std::string> benchmark_corruptions();
std::vector<std::string> extra_corruptions();

// Four files as MNIST's, below one address, with their MD5 sums in the order train images,
// train labels, test images, test labels.
Source idx_files(const std::string& address, const std::vector<std::string>& md5);

}  // namespace qact::data
