#include "qact/train/training_data.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qact/base/fail.h"
#include "qact/base/random.h"
#include "qact/data/digest.h"
#include "qact/losses/balanced_order.h"

namespace qact::train {

using base::fail;

namespace {

void shuffle(std::vector<int64_t>* items, base::Random random) {
  for (size_t i = items->size(); i > 1; --i) {
    std::swap((*items)[i - 1], (*items)[static_cast<size_t>(random.uniform() * i)]);
  }
}

data::Augmentation augmentation(const std::string& name) {
  data::Augmentation out;
  if (name == "none") return out;
  out.pad = 4;
  out.flip = name != "crop";
  out.mix = name == "augmix";
  return out;
}

data::Dataset open(const TrainConfig& c) {
  const int size = static_cast<int>(c.image_size);
  return data::open_dataset(c.data, data::data_folder(c.data_dir), {.resize = size, .crop = size});
}

}  // namespace

PrefetchingLoader::PrefetchingLoader(const data::Split& split, data::LoaderOptions options,
                                     torch::Device device)
    : size_(split.size),
      device_(device),
      copied_(device),
      loader_(split, options, slots(split, options)) {}

std::vector<data::BatchSlot> PrefetchingLoader::slots(const data::Split& split,
                                                      const data::LoaderOptions& options) {
  std::vector<data::BatchSlot> result;
  for (int i = 0; i < options.workers + 1; ++i) {
    const auto memory = torch::TensorOptions().pinned_memory(device_.is_cuda());
    memory_.push_back(torch::empty({options.batch_size * split.size.values()}, memory));
    memory_.push_back(torch::empty({options.batch_size}, memory.dtype(torch::kLong)));
    result.push_back({memory_[2 * i].data_ptr<float>(), memory_[2 * i + 1].data_ptr<int64_t>()});
  }
  return result;
}

void PrefetchingLoader::start(int64_t epoch, std::vector<int64_t> order, int64_t first) {
  copied_.wait();
  loader_.start(epoch, std::move(order), first);
}

std::optional<Batch> PrefetchingLoader::next() {
  copied_.wait();  // the workers may then have its memory again
  const data::BatchSlot* batch = loader_.next();
  if (!batch) return std::nullopt;
  const auto images = torch::from_blob(
      batch->images, {batch->count, size_.channels, size_.height, size_.width}, torch::kFloat);
  const auto labels = torch::from_blob(batch->labels, {batch->count}, torch::kLong);
  const Batch on_device{images.to(device_, /*non_blocking=*/true),
                        labels.to(device_, /*non_blocking=*/true)};
  copied_.set();
  return on_device;
}

Holdout hold_out(int64_t count, double share, uint64_t seed) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  shuffle(&order, base::Random(seed, base::Stream::holdout));
  const auto held = order.begin() + std::llround(share * static_cast<double>(count));
  return {{held, order.end()}, {order.begin(), held}};
}

TrainingData::TrainingData(const TrainConfig& config, bool balanced)
    : config_(config),
      balanced_(balanced),
      opened_(open(config)),
      split_(opened_.read({})),
      hash_(data::digest_of(split_)),
      indices_(hold_out(split_.count(), config.validation, config.split_seed)),
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
  if (images() < least) {
    fail("train", "expected at least ", least, " training images for one step, got ", images());
  }
  if (config.validation > 0 && validation_images() < 2) {
    fail("train", "expected --validation to hold out 2 images or more, or 0 for none, got ",
         config.validation, ", which is ", validation_images(), " of ", split_.count());
  }
  data::LoaderOptions options = loader_options();
  options.batch_size = batch_size_;
  options.drop_last = true;
  options.augmentation = augmentation(config.augment);
  augmented_.emplace(split_, options, torch::Device(config.device));
}

data::LoaderOptions TrainingData::loader_options() const {
  data::LoaderOptions options;
  options.workers = static_cast<int>(config_.workers);
  options.seed = config_.seed;
  options.normalisation = opened_.info.normalisation;
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
    shuffle(&order, random);
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
  augmented_->start(epoch, order(epoch), first);
}

Batch TrainingData::next() { return augmented_->next().value(); }

const std::vector<int64_t>& TrainingData::indices(Subset subset) const {
  return subset == Subset::train ? indices_.train : indices_.validation;
}

PrefetchingLoader& TrainingData::plain(Subset subset) {
  data::LoaderOptions options = loader_options();
  // A batch may be a context: none is much smaller than others, or one image alone.
  options.even = true;
  options.batch_size = std::max<int64_t>(config_.batch_size, 3);
  PrefetchingLoader& loader =
      plain_.try_emplace(subset, split_, options, torch::Device(config_.device)).first->second;
  loader.start(0, indices(subset), 0);
  return loader;
}

}  // namespace qact::train
