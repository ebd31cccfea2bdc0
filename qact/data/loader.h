// Batches of augmented, normalised images (NCHW), prefetched by worker threads. The same seed gives
// the same batches for any number of workers.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "qact/data/augment.h"
#include "qact/data/split.h"

namespace qact::data {

struct LoaderOptions {
  int64_t batch_size = 128;
  bool shuffle = false;
  bool drop_last = false;  // where it is smaller
  // As few batches as `batch_size` allows, whose sizes differ by at most one image: no batch is a
  // single image where batch_size is at least 3 and there are at least 2 images.
  bool even = false;
  // The share of each batch that this loader makes: the images of rank 0 come first, and ranks
  // differ by at most one image. Smaller batches than ranks leave some ranks without.
  int rank = 0, ranks = 1;
  int workers = 0;  // 0: next() makes the batch
  uint64_t seed = 0;
  Augmentation augmentation = {};
  Moments normalisation = {};
  bool dither = false;  // see add_dither()
};

// A buffer of the caller's (pinned, for a GPU) for `largest_share` images (NCHW) in each view of
// the augmentation, all `count` of one view after those of the other, and for the labels.
struct BatchSlot {
  float* images = nullptr;
  int64_t* labels = nullptr;
  int64_t count = 0;  // images in the batch, or in this rank's share of it
  int64_t total = 0;  // images in the batch
};

// The most images that a slot takes.
int64_t largest_share(const LoaderOptions& options);

class Loader {
 public:
  // Each worker fills one slot at a time, and the caller holds one: workers + 1 slots keep all
  // workers busy.
  Loader(Split split, LoaderOptions options, std::vector<BatchSlot> slots);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches() const;  // in an epoch

  // Starts an epoch. One that is under way is dropped.
  void start(int64_t epoch);
  // The same with the images at these indices, in this order, from batch `first` on: for subsets,
  // custom orders and resumed epochs.
  void start(int64_t epoch, std::vector<int64_t> order, int64_t first = 0);
  // The next batch, or null at the epoch's end. It is valid until the next call. An exception of a
  // worker is rethrown here.
  const BatchSlot* next();

 private:
  std::vector<int64_t> default_order(int64_t epoch) const;
  int64_t first_of(int64_t batch) const;  // the index in order_ of its first image
  void work();
  void stop();
  void fill(int64_t batch, BatchSlot* slot) const;
  void write_image(int64_t index, int view, float* out) const;
  void write_augmented(int64_t index, int view, float* out) const;

  const Split split_;
  const LoaderOptions options_;
  std::vector<BatchSlot> slots_;
  std::vector<float> normalisation_table_;
  int64_t epoch_ = 0;
  std::vector<int64_t> order_;

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::thread> workers_;
  std::vector<bool> filled_;  // by slot
  int64_t next_to_fill_ = 0;  // batch
  int64_t next_to_give_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace qact::data
