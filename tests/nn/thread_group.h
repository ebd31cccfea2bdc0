// Ranks as threads of one process: a c10d backend that adds up over them.
#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

namespace qact::tests {

// Where the threads meet.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), tensors_(size) {}

  // Sums, or maxima, in place.
  void reduce(int rank, at::Tensor& tensor, bool maximum) {
    std::unique_lock lock(mutex_);
    tensors_[rank] = tensor;
    if (++arrived_ == size_) {
      at::Tensor all = tensors_[0].clone();
      for (int r = 1; r < size_; ++r) {
        all = maximum ? at::maximum(all, tensors_[r]) : all + tensors_[r];
      }
      for (at::Tensor& of_rank : tensors_) of_rank.copy_(all);
      arrived_ = 0;
      ++rounds_;
      met_.notify_all();
      return;
    }
    const int64_t before = rounds_;
    TORCH_CHECK(met_.wait_for(lock, std::chrono::seconds(60), [&] { return rounds_ > before; }),
                "a rank did not come");
  }
  int64_t rounds() const { return rounds_; }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::vector<at::Tensor> tensors_;
  int arrived_ = 0;
  int64_t rounds_ = 0;
};

class ThreadBackend : public c10d::Backend {
 public:
  ThreadBackend(int rank, int size, std::shared_ptr<Meeting> meeting)
      : Backend(rank, size), meeting_(std::move(meeting)) {}
  const std::string getBackendName() const override { return "thread"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    meeting_->reduce(getRank(), tensors.at(0), options.reduceOp == c10d::ReduceOp::MAX);
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
    future->markCompleted();
    return c10d::Work::create_from_future(future);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
};

using MakeBackend =
    std::function<c10::intrusive_ptr<c10d::Backend>(int rank, int size, std::shared_ptr<Meeting>)>;

// body(rank, name) on every rank, name that of its group. Returns the number of rounds.
inline int64_t on_ranks(
    int size, const std::function<void(int, const std::string&)>& body,
    const MakeBackend& make = [](int rank, int size, std::shared_ptr<Meeting> meeting) {
      return c10::make_intrusive<ThreadBackend>(rank, size, std::move(meeting));
    }) {
  const auto meeting = std::make_shared<Meeting>(size);
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string name = "thread" + std::to_string(rank);
      const auto group = c10::make_intrusive<c10d::ProcessGroup>(
          c10::make_intrusive<c10d::HashStore>(), rank, size);
      group->setGroupName(name);
      const auto backend = make(rank, size, meeting);
      for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
        group->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM, backend);
      }
      c10d::register_process_group(name, group);
      try {
        body(rank, name);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
      c10d::unregister_process_group(name);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return meeting->rounds();
}

}  // namespace qact::tests
