// Copies of one model for jobs on many threads.
#pragma once

#include <torch/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qact/train/device.h"
#include "qact/train/model_file.h"

namespace qact::eval {

// On the CPU it has a model for each thread. On a GPU it has two, so that images for one are
// prepared while the other runs; jobs take turns at them, and compute corruptions and metrics in
// parallel. Copies are made from the model in memory: a later change of its file changes no row.
// Jobs leave a model as it was (nn/state_guard.h), parameters included.
class ModelPool {
 public:
  // The threads' models are on this thread's current GPU where the device has no index.
  ModelPool(train::Model original, const std::string& device, int threads)
      : original_(std::move(original)),
        device_(train::with_index(device)),
        left_(device_.is_cpu() ? threads : kOnGpu) {}

  // A model for one job while it lives. Waits until one is free.
  class Lease {
   public:
    explicit Lease(ModelPool& pool) : pool_(pool), model_(pool.acquire()) {}
    ~Lease() { pool_.release(std::move(model_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const train::Model& operator*() const { return *model_; }

   private:
    ModelPool& pool_;
    std::unique_ptr<train::Model> model_;
  };

 private:
  std::unique_ptr<train::Model> acquire();
  std::unique_ptr<train::Model> copy();
  void release(std::unique_ptr<train::Model> model);

  static constexpr int kOnGpu = 2;

  const train::Model original_;  // never leased
  const torch::Device device_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<train::Model>> free_;
  int left_;  // copies that may still be made
};

}  // namespace qact::eval
