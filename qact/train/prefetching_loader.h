// Batches of a split as tensors on a device. Worker threads fill pinned memory ahead of time, and
// each batch is copied to the device asynchronously.
#pragma once

#include <torch/types.h>

#include <optional>
#include <vector>

#include "qact/data/loader.h"
#include "qact/train/event.h"

namespace qact::train {

struct Batch {
  torch::Tensor images, labels;  // (B, channels, height, width) float and (B) int64
  // The same images under AugMix, where LoaderOptions::augmentation has such views.
  std::vector<torch::Tensor> mixed_views;
  int64_t total = 0;  // images of all ranks in the batch
};

class PrefetchingLoader {
 public:
  PrefetchingLoader(const data::Split& split, data::LoaderOptions options, torch::Device device);

  // As data::Loader::start().
  void start(int64_t epoch, std::vector<int64_t> order, int64_t first);
  // Valid until the next call; none at the end of the epoch.
  std::optional<Batch> next();

 private:
  std::vector<data::BatchSlot> slots(const data::Split& split, const data::LoaderOptions& options);

  image::Size size_;
  int views_;
  torch::Device device_;
  std::vector<torch::Tensor> memory_;  // of the slots: images, labels, images, labels, ...
  Event copied_;                       // the last batch, to the device
  data::Loader loader_;
};

}  // namespace qact::train
