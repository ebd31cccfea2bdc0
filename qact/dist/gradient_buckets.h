// Gradients summed over all ranks, in buckets whose sums start while the backward pass still runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "qact/dist/world.h"

namespace qact::dist {

class GradientBuckets {
 public:
  static constexpr int64_t kBucketBytes = int64_t{4} << 20;

  // The parameters in the order of the forward pass: the last ones have their gradients first.
  // They are the same on all ranks, and so are the buckets and the order of their sums.
  GradientBuckets(const World& world, const std::vector<at::Tensor>& parameters,
                  int64_t bucket_bytes = kBucketBytes);
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  size_t buckets() const;
  size_t started() const;  // sums, since start()
  // Before the backward pass that completes the gradients: each bucket's sum starts once its
  // gradients are there and the buckets before it have started.
  void start();
  // Starts the sums that have not started, waits for all, and leaves them in the gradients. A
  // parameter without a gradient gets none.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;  // the parameters and their hooks may outlive this
};

}  // namespace qact::dist
