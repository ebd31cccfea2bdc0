// The discrete part of the watershed loss: which samples a flood from a few seeds labels correctly,
// and which of these are nearest. Loops without torch, O(n^2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qact/base/random.h"

namespace qact::losses {

// n x n distances, row by row.
struct Distances {
  const float* values;
  int64_t count;

  float operator()(int64_t i, int64_t j) const { return values[i * count + j]; }
};

// Up to `seeds` distinct samples of each class, drawn uniformly; in ascending order.
std::vector<int64_t> draw_seeds(std::span<const int64_t> labels, int64_t seeds,
                                base::Random& random);

// The label that the flood gives each sample. Prim's algorithm from all seeds at once: the
// unlabelled sample nearest to any labelled one takes its label, until all have one. Ties go to the
// smaller index, of the sample and of its neighbour. The result is the seeded watershed cut: the
// minimum spanning forest rooted at the seeds.
std::vector<int64_t> flood(const Distances& distances, std::span<const int64_t> labels,
                           std::span<const int64_t> seeds);

// For each sample i and each class c the nearest j != i with flooded[j] == labels[j] == c, -1 where
// there is none; (n, classes), row by row. Labels are 0 to classes - 1. Ties go to the smaller
// index.
std::vector<int64_t> nearest_correct(const Distances& distances, std::span<const int64_t> labels,
                                     std::span<const int64_t> flooded, int64_t classes);

}  // namespace qact::losses
