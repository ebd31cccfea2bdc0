// Batches of augmented, normalised images, made ahead by worker threads. The same seed gives
// the same batches for any number of workers.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "qact/data/augmix.h"
#include "qact/data/split.h"

namespace qact::data {

struct Augmentation {
  int pad = 0;  // black on each side, before the crop back to the image's size
  bool flip = false;
  bool mix = false;  // with AugMix
  AugMix augmix = {};
};

struct LoaderOptions {
  int64_t batch_size = 128;
  bool shuffle = false;
  bool drop_last = false;  // a smaller last batch
  // As few batches as `batch_size` allows, whose sizes differ by one image at most: no batch is
  // one image alone, where batch_size is 3 or more and there are 2 images or more.
  bool even = false;
  int workers = 0;  // 0: batches are made when asked for
  uint64_t seed = 0;
  Augmentation augmentation = {};
  Moments normalisation = {};
};

// A buffer of the caller's (pinned, for a GPU) for `batch_size` images (NCHW) and labels.
struct BatchSlot {
  float* images = nullptr;
  int64_t* labels = nullptr;
  int64_t count = 0;  // images in the batch
};

class Loader {
 public:
  // A worker fills one slot at a time, and one is in the caller's hands: workers + 1 slots
  // keep all busy.
  Loader(Split split, LoaderOptions options, std::vector<BatchSlot> slots);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches() const;  // in an epoch

  // Leaves an epoch that is under way.
  void start(int64_t epoch);
  // The images at these indices, in this order, from batch `first` on: for parts of a split,
  // orders of one's own, and epochs that were left.
  void start(int64_t epoch, std::vector<int64_t> order, int64_t first = 0);
  // The next batch in order, or null at the epoch's end. It is valid until the next call. An
  // error of a worker is thrown here.
  const BatchSlot* next();

 private:
  std::vector<int64_t> own_order(int64_t epoch) const;
  int64_t first_of(int64_t batch) const;  // image, by its place in the order
  void work();
  void stop();
  void fill(int64_t batch, BatchSlot* slot) const;
  void write_image(int64_t index, float* out) const;

  const Split split_;
  const LoaderOptions options_;
  std::vector<BatchSlot> slots_;
  std::vector<float> normalised_;  // of each channel and byte
  int64_t epoch_ = 0;
  std::vector<int64_t> order_;

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::thread> workers_;
  std::vector<bool> filled_;  // slots
  int64_t next_to_fill_ = 0;  // batches
  int64_t next_to_give_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace qact::data
