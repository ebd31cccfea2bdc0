// The training and the validation images of a run, as batches of tensors. Both come from the
// dataset's training split: its test split is not read.
#pragma once

#include <torch/types.h>

#include <map>
#include <optional>
#include <vector>

#include "qact/data/dataset.h"
#include "qact/dist/world.h"
#include "qact/train/config.h"
#include "qact/train/prefetching_loader.h"

namespace qact::train {

struct SplitIndices {
  std::vector<int64_t> train, validation;
};
// Splits the indices 0 to count - 1 at random: round(validation_share * count) are for validation.
SplitIndices random_split(int64_t count, double validation_share, uint64_t seed);

class TrainingData {
 public:
  // `balanced`: training batches are class-balanced (losses/balanced_order.h). Each rank of `world`
  // makes its share of every batch.
  TrainingData(const TrainConfig& config, bool balanced, const dist::World& world = {});

  const data::DatasetInfo& dataset() const { return opened_.info; }
  const data::Split& split() const { return split_; }
  const std::string& hash() const { return hash_; }  // data::digest_of(split())
  bool dithered() const { return dithered_; }        // data::add_dither()
  // Training images.
  int64_t images() const { return static_cast<int64_t>(indices_.train.size()); }
  int64_t validation_images() const { return static_cast<int64_t>(indices_.validation.size()); }
  int64_t batch_size() const { return batch_size_; }  // of all ranks
  int64_t batches() const;                            // in an epoch

  // Starts on the training batches of an epoch, from the batch `first` on. Their order depends on
  // the seed and the epoch alone.
  void start(int64_t epoch, int64_t first);
  Batch next();

  enum class Subset { train, validation };
  // Starts on a subset's images: each once, in a fixed order, without augmentation.
  PrefetchingLoader& evaluation_loader(Subset subset);
  // All images for one rank alone, in batches of the size of its share, or of the whole batch where
  // contexts span the ranks.
  PrefetchingLoader& lone_evaluation_loader(Subset subset);
  // The training images in the same batches, augmented as in an epoch after the last.
  PrefetchingLoader& lone_training_loader();

 private:
  const std::vector<int64_t>& indices(Subset subset) const;
  data::LoaderOptions loader_options() const;
  void check_ranks() const;
  data::LoaderOptions lone_loader_options() const;
  // Each image of a subset once, in a fixed order.
  PrefetchingLoader& start_once(std::optional<PrefetchingLoader>& loader, Subset subset,
                                const data::LoaderOptions& options);
  int64_t classes_in_batch() const;
  std::vector<int64_t> order(int64_t epoch) const;

  const TrainConfig config_;
  const bool balanced_;
  const int rank_, ranks_;
  const data::Dataset opened_;
  const data::Split split_;
  const std::string hash_;
  const bool dithered_;
  const SplitIndices indices_;
  const int64_t batch_size_;
  std::optional<PrefetchingLoader> training_loader_, lone_training_loader_;
  std::map<Subset, std::optional<PrefetchingLoader>> evaluation_loaders_, lone_loaders_;
};

}  // namespace qact::train
