#include "qact/report/paper.h"

#include <algorithm>

namespace qact::report {
namespace {

const std::vector<PaperDrop>& all() {
  static const std::vector<PaperDrop> drops = {
      {"cifar10",
       "ResNet18, ReLU",
       {6.70, 11.57, 17.27, 24.82, 35.49, 4.87, 10.57, 18.12, 28.79, 5.70, 13.25, 23.92, 7.55,
        18.22, 10.67}},
      {"cifar10",
       "DINOv2 small",
       {6.92, 10.66, 15.74, 21.58, 30.93, 3.74, 8.82, 14.67, 24.02, 5.08, 10.93, 20.28, 5.85, 15.20,
        9.35}},
      {"cifar10",
       "ResNet18, QAct",
       {4.42, 6.88, 9.22, 12.42, 16.86, 2.46, 4.80, 8.00, 12.44, 2.34, 5.54, 9.98, 3.20, 7.64,
        4.45}},
      {"cifar10", "Batch Norm", {12.8, 15.8, 18.5, 21.9, 26.0}},
      {"cifar10", "DUA", {6.7, 9.3, 11.8, 15.0, 19.9}},
      {"cifar10", "MEMO", {4.83, 7.65, 11.17, 15.43, 22.39}},
      {"cifar10", "TTT", {7.1, 10.3, 13.6, 17.8, 24.5}},
      {"cifar10", "AFN", {5.85, 8.55, 11.45, 15.25, 18.15}},
      {"cifar10", "ASRNorm", {4.6, 7.9, 11.1, 15.4, 21.1}},
      {"cifar100",
       "ResNet18, ReLU",
       {10.25, 17.85, 23.78, 29.81, 36.87, 7.59, 13.52, 19.56, 26.62, 5.93, 11.97, 19.03, 6.04,
        13.10, 7.06}},
      {"cifar100",
       "DINOv2 small",
       {10.64, 16.39, 22.54, 28.71, 38.02, 5.74, 11.89, 18.06, 27.37, 6.15, 12.32, 21.63, 6.17,
        15.48, 9.31}},
      {"cifar100",
       "ResNet18, QAct",
       {5.83, 9.07, 12.20, 15.93, 21.00, 3.24, 6.38, 10.10, 15.17, 3.13, 6.86, 11.92, 3.73, 8.79,
        5.06}},
      {"tiny-imagenet",
       "ResNet18, ReLU",
       {5.51, 9.58, 14.90, 19.13, 21.49, 4.07, 9.39, 13.62, 15.97, 5.32, 9.55, 11.90, 4.23, 6.58,
        2.35}},
      {"tiny-imagenet",
       "DINOv2 small",
       {9.39, 14.73, 23.30, 33.78, 42.52, 5.34, 13.91, 24.39, 33.13, 8.57, 19.05, 27.79, 10.48,
        19.22, 8.74}},
      {"tiny-imagenet",
       "ResNet18, QAct",
       {3.27, 4.86, 7.26, 10.43, 13.18, 1.59, 3.99, 7.16, 9.90, 2.40, 5.56, 8.31, 3.17, 5.92,
        2.75}},
  };
  return drops;
}

}  // namespace

std::vector<PaperDrop> paper_drops(const std::string& dataset) {
  std::vector<PaperDrop> found;
  std::copy_if(all().begin(), all().end(), std::back_inserter(found),
               [&](const PaperDrop& drop) { return dataset == drop.dataset; });
  return found;
}

}  // namespace qact::report
