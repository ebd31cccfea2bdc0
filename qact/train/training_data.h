// The images that a run trains on and those that it chooses by, as batches of tensors. Both
// are of the training part: the test part is not read.
#pragma once

#include <torch/types.h>

#include <map>
#include <optional>
#include <vector>

#include "qact/data/dataset.h"
#include "qact/data/loader.h"
#include "qact/train/config.h"
#include "qact/train/event.h"

namespace qact::train {

struct Batch {
  torch::Tensor images, labels;
};

// A loader whose batches are tensors on a device.
class PrefetchingLoader {
 public:
  PrefetchingLoader(const data::Split& split, data::LoaderOptions options, torch::Device device);

  void start(int64_t epoch, std::vector<int64_t> order, int64_t first);
  // Valid until the next call; none at the end.
  std::optional<Batch> next();

 private:
  std::vector<data::BatchSlot> slots(const data::Split& split, const data::LoaderOptions& options);

  image::Size size_;
  torch::Device device_;
  std::vector<torch::Tensor> memory_;
  Event copied_;  // the last batch, to the device
  data::Loader loader_;
};

// Indices of the images, at random by `seed`: round(share * count) of them are held out.
struct Holdout {
  std::vector<int64_t> train, validation;
};
Holdout hold_out(int64_t count, double share, uint64_t seed);

class TrainingData {
 public:
  // `balanced`: every batch has equally many samples of several classes.
  TrainingData(const TrainConfig& config, bool balanced);

  const data::DatasetInfo& dataset() const { return opened_.info; }
  const data::Split& split() const { return split_; }
  const std::string& hash() const { return hash_; }  // data::digest_of it
  int64_t images() const { return static_cast<int64_t>(indices_.train.size()); }
  int64_t validation_images() const { return static_cast<int64_t>(indices_.validation.size()); }
  int64_t batch_size() const { return batch_size_; }
  int64_t batches() const;  // in an epoch

  // Batches of an epoch, from `first` on. Its order depends on the seed and the epoch alone.
  void start(int64_t epoch, int64_t first);
  Batch next();

  enum class Subset { train, validation };
  // Starts on the part's images, once each, in a fixed order, as they are.
  PrefetchingLoader& plain(Subset subset);

 private:
  const std::vector<int64_t>& indices(Subset subset) const;
  data::LoaderOptions loader_options() const;
  int64_t classes_in_batch() const;
  std::vector<int64_t> order(int64_t epoch) const;

  const TrainConfig config_;
  const bool balanced_;
  const data::Dataset opened_;
  const data::Split split_;
  const std::string hash_;
  const Holdout indices_;
  const int64_t batch_size_;
  std::optional<PrefetchingLoader> augmented_;
  std::map<Subset, PrefetchingLoader> plain_;
};

}  // namespace qact::train
