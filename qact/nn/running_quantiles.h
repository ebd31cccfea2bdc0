// The quantiles of a running context, computed once until it changes.
#pragma once

#include <torch/types.h>

#include <mutex>

#include "qact/ops/options.h"

namespace qact::nn {

class RunningQuantiles {
 public:
  // (C, levels) double. Whether the context has changed is known by torch's version counter, which
  // every operator that writes in place moves on, but a write through data() or a pointer does not;
  // one that a CUDA graph may write is not asked, but computed anew. Safe to call from many
  // threads.
  torch::Tensor get(const torch::Tensor& context, const ops::QuantileOptions& options);

 private:
  std::mutex lock_;
  torch::Tensor quantiles_;
  c10::Storage of_;  // held, so that no other context can have its address
  const void* data_ = nullptr;
  uint32_t version_ = 0;
  ops::QuantileOptions options_;
};

}  // namespace qact::nn
