// Copies of one model for jobs on many threads.
#pragma once

#include <torch/types.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qact/run/model_file.h"

namespace qact::run {

// Models that jobs borrow: one for each thread on the CPU. On a GPU two in all, so that one's
// images are prepared while the other's pass through; jobs take turns at them, and make
// distortions and metrics side by side.
class Models {
 public:
  Models(std::filesystem::path path, const std::string& device, int threads)
      : path_(std::move(path)), device_(device), left_(device_.is_cpu() ? threads : kOnGpu) {}

  class Loan {
   public:
    explicit Loan(Models& models) : models_(models), model_(models.take()) {}
    ~Loan() { models_.give_back(std::move(model_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    const Model& operator*() const { return *model_; }

   private:
    Models& models_;
    std::unique_ptr<Model> model_;
  };

 private:
  std::unique_ptr<Model> take() {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return !free_.empty() || left_ > 0; });
    if (free_.empty()) {
      left_ -= 1;
      lock.unlock();
      return load();
    }
    auto model = std::move(free_.back());
    free_.pop_back();
    return model;
  }

  // A failure must not leave others waiting for a model that never comes.
  std::unique_ptr<Model> load() try {
    auto model = std::make_unique<Model>(load_model(path_));
    model->network->to(device_);
    if (!device_.is_cpu()) model->network->use_channels_last();
    model->classifiers.to(device_);
    return model;
  } catch (...) {
    const std::scoped_lock lock(lock_);
    left_ += 1;
    changed_.notify_one();
    throw;
  }

  void give_back(std::unique_ptr<Model> model) {
    const std::scoped_lock lock(lock_);
    free_.push_back(std::move(model));
    changed_.notify_one();
  }

  static constexpr int kOnGpu = 2;

  const std::filesystem::path path_;
  const torch::Device device_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Model>> free_;
  int left_;  // to be loaded
};

}  // namespace qact::run
