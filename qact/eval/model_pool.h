// Copies of one model for jobs on many threads.
#pragma once

#include <torch/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qact/train/model_file.h"

namespace qact::eval {

// ModelPool that jobs borrow: one for each thread on the CPU. On a GPU two in all, so that one's
// images are prepared while the other's pass through; jobs take turns at them, and make
// corruptions and metrics side by side. Copies are made of the model in memory: what becomes of
// its file meanwhile changes no row. Borrowers leave a model as it was (unchanged.h).
class ModelPool {
 public:
  ModelPool(train::Model original, const std::string& device, int threads)
      : original_(std::move(original)),
        device_(device),
        left_(device_.is_cpu() ? threads : kOnGpu) {}

  class Loan {
   public:
    explicit Loan(ModelPool& models) : models_(models), model_(models.take()) {}
    ~Loan() { models_.give_back(std::move(model_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    const train::Model& operator*() const { return *model_; }

   private:
    ModelPool& models_;
    std::unique_ptr<train::Model> model_;
  };

 private:
  std::unique_ptr<train::Model> take();
  std::unique_ptr<train::Model> copy();
  void give_back(std::unique_ptr<train::Model> model);

  static constexpr int kOnGpu = 2;

  const train::Model original_;  // lent to nobody
  const torch::Device device_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<train::Model>> free_;
  int left_;  // to be copied
};

}  // namespace qact::eval
