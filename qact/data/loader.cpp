#include "qact/data/loader.h"

#include <algorithm>
#include <numeric>

#include "qact/base/fail.h"
#include "qact/base/shuffle.h"
#include "qact/data/augment.h"

namespace qact::data {

using base::fail;

int64_t largest_share(const LoaderOptions& options) {
  return (options.batch_size + options.ranks - 1) / options.ranks;
}

Loader::Loader(Split split, LoaderOptions options, std::vector<BatchSlot> slots)
    : split_(std::move(split)), options_(std::move(options)), slots_(std::move(slots)) {
  if (options_.batch_size < 1) {
    fail("loader", "expected a batch of 1 or more, got ", options_.batch_size);
  }
  if (options_.rank < 0 || options_.rank >= options_.ranks) {
    fail("loader", "expected a rank below ", options_.ranks, ", got ", options_.rank);
  }
  if (slots_.empty()) fail("loader", "expected a slot or more, got none");
  if (options_.even && options_.drop_last) {
    fail("loader", "expected even batches or whole ones, got both");
  }
  normalisation_table_ = normalisation_table(options_.normalisation, split_.size.channels);
  order_.resize(split_.count());
}

Loader::~Loader() { stop(); }

int64_t Loader::batches() const {
  const auto images = static_cast<int64_t>(order_.size());
  return images / options_.batch_size + (!options_.drop_last && images % options_.batch_size != 0);
}

int64_t Loader::first_of(int64_t batch) const {
  const auto images = static_cast<int64_t>(order_.size());
  return options_.even ? batch * images / batches() : std::min(batch * options_.batch_size, images);
}

void Loader::stop() {
  {
    const std::scoped_lock lock(lock_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  stopping_ = false;
}

std::vector<int64_t> Loader::default_order(int64_t epoch) const {
  std::vector<int64_t> order(split_.count());
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    base::Random random(options_.seed, base::Stream::order, epoch);
    base::shuffle(order, random);
  }
  return order;
}

void Loader::start(int64_t epoch) { start(epoch, default_order(epoch)); }

void Loader::start(int64_t epoch, std::vector<int64_t> order, int64_t first) {
  for (const int64_t index : order) {
    if (index < 0 || index >= split_.count()) {
      fail("loader", "expected images of 0 to ", split_.count() - 1, ", got ", index);
    }
  }
  if (first < 0) fail("loader", "expected a first batch of 0 or more, got ", first);
  stop();
  epoch_ = epoch;
  next_to_fill_ = next_to_give_ = first;
  failure_ = nullptr;
  filled_.assign(slots_.size(), false);
  order_ = std::move(order);
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
}

// Batch b goes to slot b mod slots, once the caller has returned the batch that was there before.
void Loader::work() {
  const auto slots = static_cast<int64_t>(slots_.size());
  std::unique_lock lock(lock_);
  while (!stopping_ && next_to_fill_ < batches()) {
    const int64_t batch = next_to_fill_++;
    // The caller holds batch next_to_give_ - 1 and has returned all before it.
    changed_.wait(lock, [&] { return stopping_ || batch < next_to_give_ - 1 + slots; });
    if (stopping_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      fill(batch, &slots_[batch % slots]);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    filled_[batch % slots] = true;
    changed_.notify_all();
  }
}

const BatchSlot* Loader::next() {
  if (next_to_give_ >= batches()) return nullptr;
  const auto slot = static_cast<size_t>(next_to_give_) % slots_.size();
  if (options_.workers == 0) {
    fill(next_to_give_++, &slots_[slot]);
    return &slots_[slot];
  }
  std::unique_lock lock(lock_);
  ++next_to_give_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return filled_[slot] || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  filled_[slot] = false;
  return &slots_[slot];
}

void Loader::fill(int64_t batch, BatchSlot* slot) const {
  slot->total = first_of(batch + 1) - first_of(batch);
  const int64_t first = first_of(batch) + options_.rank * slot->total / options_.ranks;
  slot->count = first_of(batch) + (options_.rank + 1) * slot->total / options_.ranks - first;
  const int64_t values = split_.size.values();
  for (int64_t i = 0; i < slot->count; ++i) {
    slot->labels[i] = split_.labels[order_[first + i]];
    for (int view = 0; view < options_.augmentation.views(); ++view) {
      write_image(order_[first + i], view, slot->images + (view * slot->count + i) * values);
    }
  }
}

// What is drawn depends on the seed, the epoch, the image's index and the view alone; crop and flip
// not on the view.
void Loader::write_image(int64_t index, int view, float* out) const {
  write_augmented(index, view, out);
  if (!options_.dither) return;
  add_dither(split_.size, normalisation_table_,
             base::Random(options_.seed, base::Stream::dither, epoch_, index, view), out);
}

void Loader::write_augmented(int64_t index, int view, float* out) const {
  base::Random random(options_.seed, base::Stream::augmentation, epoch_, index);
  const Augmentation& how = options_.augmentation;
  const CropFlip at = draw_crop_flip(how, &random);
  const uint8_t* pixels = split_.image(index);
  if (how.mixed_views > 0 ? view == 0 : !how.mix) {
    write_normalised(pixels, split_.size, at, normalisation_table_, out);
    return;
  }
  base::Random mixing(options_.seed, base::Stream::augmix, epoch_, index, view);
  const auto terms = augmix(crop_flip(pixels, split_.size, at), how.augmix, &mixing);
  write_mixed(terms, normalisation_table_, out);
}

}  // namespace qact::data
