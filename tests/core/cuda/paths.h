// The paths through the fused layer's kernels, by the shapes that take them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/core/cuda/layer_run.h"

namespace qact::core::testing {

// Named by its launches in both directions: `%` stands for the type of the values.
struct Path {
  const char* name;
  Shape shape;
  Layout layout;
  std::vector<std::string> forward, backward;
  Quantile quantile = {};
  int64_t beside = 0;  // channels of a wider tensor on either side
  int64_t sets = 1;    // of so many images each

  int64_t contexts() const { return sets * shape.channels; }
};

std::vector<Path> paths(DType dtype);
// Those that several sets of contexts take as one does.
std::vector<Path> paths_of_sets(DType dtype);
// One of each kind, of at least so many channels.
std::vector<Path> short_list(DType dtype, int64_t channels);

// What a path is run on; values(n, k) are those of context k, which is a channel's where there is
// one set.
struct Given {
  Tensor x, grad_y;
  Affines affines;
  int64_t channels;

  using Values = std::function<std::vector<double>(int64_t n, int64_t c)>;
  Given(const Path& path, DType dtype, const Values& values);
};

// That the launches of a run so far were the path's.
void expect_path(const Path& path, DType dtype, const std::vector<emulator::Launch>& launches);

// Levels and norms of some contexts, and the gradients of some.
void expect_oracle(const Path& path, DType dtype, Given& given,
                   const std::vector<int64_t>& contexts, const std::vector<int64_t>& gradients);

// In all schedules.
void expect_same_bits(const Path& path, Given& given);

}  // namespace qact::core::testing
