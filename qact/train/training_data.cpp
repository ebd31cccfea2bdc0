#include "qact/train/training_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qact/base/fail.h"
#include "qact/base/random.h"
#include "qact/base/shuffle.h"
#include "qact/data/digest.h"
#include "qact/losses/balanced_order.h"

namespace qact::train {

using base::fail;

namespace {

data::Augmentation augmentation(const TrainConfig& config) {
  data::Augmentation out;
  if (config.augment == "none") return out;
  out.pad = 4;
  out.flip = config.augment != "crop";
  out.mix = config.augment == "augmix";
  if (config.jsd > 0) out.mixed_views = 2;
  return out;
}

data::Dataset open(const TrainConfig& c) {
  const int size = static_cast<int>(c.image_size);
  return data::open_dataset(c.data, data::data_folder(c.data_dir), {.resize = size, .crop = size});
}

}  // namespace

SplitIndices random_split(int64_t count, double validation_share, uint64_t seed) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  base::Random random(seed, base::Stream::holdout);
  base::shuffle(order, random);
  const auto train = order.begin() + std::llround(validation_share * static_cast<double>(count));
  return {{train, order.end()}, {order.begin(), train}};
}

TrainingData::TrainingData(const TrainConfig& config, bool balanced, const dist::World& world)
    : config_(config),
      balanced_(balanced),
      rank_(world.rank()),
      ranks_(world.size()),
      opened_(open(config)),
      split_(opened_.read({})),
      hash_(data::digest_of(split_)),
      dithered_(config.dither == "on" || (config.dither == "auto" && data::needs_dither(split_))),
      indices_(random_split(split_.count(), config.validation, config.split_seed)),
      batch_size_(balanced ? config.batch_size / classes_in_batch() * classes_in_batch()
                           : config.batch_size) {
  const int64_t least = batch_size_ * config.accumulate;
  if (split_.size.height != split_.size.width) {
    fail("train", "expected square images, got ", split_.size.height, "x", split_.size.width,
         " in ", config.data);
  }
  if (balanced && batch_size_ < 2 * classes_in_batch()) {
    fail("train", "expected --batch-size of at least 2 samples of ", classes_in_batch(),
         " classes for the loss ", config.loss, ", got ", config.batch_size);
  }
  check_ranks();
  if (images() < least) {
    fail("train", "expected at least ", least, " training images for one step, got ", images());
  }
  if (config.validation > 0 && validation_images() < 2) {
    fail("train", "expected --validation to hold out 2 images or more, or 0 for none, got ",
         config.validation, ", which is ", validation_images(), " of ", split_.count());
  }
  data::LoaderOptions options = loader_options();
  options.rank = rank_;
  options.ranks = ranks_;
  options.batch_size = batch_size_;
  options.drop_last = true;
  options.augmentation = augmentation(config);
  training_loader_.emplace(split_, options, torch::Device(config.device));
}

// A rank's share is a context, or a batch to normalise: one image would be none.
void TrainingData::check_ranks() const {
  const int64_t least = config_.context_scope == "world" ? 1 : 2;
  if (ranks_ == 1 || batch_size_ >= least * ranks_) return;
  fail("train", "expected a --batch-size of at least ", least * ranks_, ", ", least,
       least == 1 ? " image" : " images", " for each of ", ranks_, " ranks, got ", batch_size_);
}

data::LoaderOptions TrainingData::loader_options() const {
  data::LoaderOptions options;
  options.workers = static_cast<int>(config_.workers);
  options.seed = config_.seed;
  options.normalisation = opened_.info.normalisation;
  options.dither = dithered_;
  return options;
}

int64_t TrainingData::classes_in_batch() const {
  return std::min<int64_t>(config_.classes_per_batch, split_.classes);
}

int64_t TrainingData::batches() const { return images() / batch_size_; }

std::vector<int64_t> TrainingData::order(int64_t epoch) const {
  base::Random random(config_.seed, base::Stream::order, epoch);
  std::vector<int64_t> order = indices_.train;
  if (!balanced_) {
    base::shuffle(order, random);
    return order;
  }
  std::vector<int64_t> labels;
  for (const int64_t index : indices_.train) labels.push_back(split_.labels[index]);
  const int64_t classes = classes_in_batch();
  const std::vector<int64_t> positions =
      losses::balanced_order(labels, classes, batch_size_ / classes, random);
  order.clear();
  for (const int64_t position : positions) order.push_back(indices_.train[position]);
  return order;
}

void TrainingData::start(int64_t epoch, int64_t first) {
  training_loader_->start(epoch, order(epoch), first);
}

Batch TrainingData::next() { return training_loader_->next().value(); }

const std::vector<int64_t>& TrainingData::indices(Subset subset) const {
  return subset == Subset::train ? indices_.train : indices_.validation;
}

PrefetchingLoader& TrainingData::evaluation_loader(Subset subset) {
  data::LoaderOptions options = loader_options();
  options.rank = rank_;
  options.ranks = ranks_;
  options.batch_size = config_.batch_size;
  return start_once(evaluation_loaders_[subset], subset, options);
}

data::LoaderOptions TrainingData::lone_loader_options() const {
  data::LoaderOptions options = loader_options();
  options.batch_size =
      config_.context_scope == "world" ? config_.batch_size : config_.batch_size / ranks_;
  return options;
}

PrefetchingLoader& TrainingData::lone_evaluation_loader(Subset subset) {
  return start_once(lone_loaders_[subset], subset, lone_loader_options());
}

PrefetchingLoader& TrainingData::lone_training_loader() {
  data::LoaderOptions options = lone_loader_options();
  options.augmentation = augmentation(config_);
  options.augmentation.mixed_views = 0;
  return start_once(lone_training_loader_, Subset::train, options);
}

PrefetchingLoader& TrainingData::start_once(std::optional<PrefetchingLoader>& loader, Subset subset,
                                            const data::LoaderOptions& given) {
  data::LoaderOptions options = given;
  // A batch may be a context: none should be much smaller than the others, or a single image.
  options.even = true;
  options.batch_size = std::max<int64_t>(given.batch_size, 3);
  if (!loader) loader.emplace(split_, options, torch::Device(config_.device));
  loader->start(config_.epochs + 1, indices(subset), 0);
  return *loader;
}

}  // namespace qact::train
