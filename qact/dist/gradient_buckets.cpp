#include "qact/dist/gradient_buckets.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

namespace qact::dist {
struct GradientBuckets::State {
  struct Bucket {
    std::vector<at::Tensor> parameters;
    at::Tensor flat;  // their gradients, one after the other
    int64_t bytes = 0;
    size_t ready = 0;  // parameters whose gradients are there
    c10::intrusive_ptr<c10d::Work> work = {};

    // The part of `flat` for each parameter's gradient, in the gradient's shape.
    template <class Visit>
    void visit_parts(const Visit& visit) const {
      int64_t at = 0;
      for (const at::Tensor& parameter : parameters) {
        visit(parameter, flat.narrow(0, at, parameter.numel()).view(parameter.sizes()));
        at += parameter.numel();
      }
    }
  };

  World world;
  std::vector<Bucket> buckets;
  size_t next = 0;  // the first bucket whose sum has not started
  bool active = false;

  void add_ready(size_t bucket) {
    if (!active) return;
    buckets[bucket].ready += 1;
    while (next < buckets.size() && buckets[next].ready >= buckets[next].parameters.size()) {
      start_next();
    }
  }

  void start_next() {
    Bucket& bucket = buckets[next++];
    const torch::NoGradGuard no_grad;
    bucket.visit_parts([](const at::Tensor& parameter, at::Tensor part) {
      parameter.grad().defined() ? part.copy_(parameter.grad()) : part.zero_();
    });
    bucket.work = world.start_sum(bucket.flat);
  }

  static std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& parameters,
                                          int64_t most_bytes) {
    std::vector<Bucket> buckets;
    for (auto it = parameters.rbegin(); it != parameters.rend(); ++it) {
      const auto bytes = static_cast<int64_t>(it->nbytes());
      if (buckets.empty() || buckets.back().bytes + bytes > most_bytes ||
          buckets.back().parameters[0].dtype() != it->dtype()) {
        buckets.emplace_back();
      }
      buckets.back().parameters.push_back(*it);
      buckets.back().bytes += bytes;
    }
    for (Bucket& bucket : buckets) {
      int64_t values = 0;
      for (const at::Tensor& parameter : bucket.parameters) values += parameter.numel();
      bucket.flat = at::empty({values}, bucket.parameters[0].options().requires_grad(false));
    }
    return buckets;
  }
};

namespace {

struct ReadyHook : torch::autograd::PostAccumulateGradHook {
  explicit ReadyHook(std::function<void()> ready) : ready_(std::move(ready)) {}
  void operator()(const torch::autograd::Variable&) override { ready_(); }

 private:
  const std::function<void()> ready_;
};

}  // namespace

GradientBuckets::GradientBuckets(const World& world, const std::vector<at::Tensor>& parameters,
                                 int64_t bucket_bytes)
    : state_(std::make_shared<State>(State{world, State::make_buckets(parameters, bucket_bytes)})) {
  for (size_t i = 0; i < state_->buckets.size(); ++i) {
    for (const at::Tensor& parameter : state_->buckets[i].parameters) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          parameter, std::make_unique<ReadyHook>([state = std::weak_ptr(state_), i] {
            if (const auto open = state.lock()) open->add_ready(i);
          }));
    }
  }
}

size_t GradientBuckets::buckets() const { return state_->buckets.size(); }

size_t GradientBuckets::started() const { return state_->next; }

void GradientBuckets::start() { state_->active = true; }

void GradientBuckets::finish() {
  state_->active = false;
  while (state_->next < state_->buckets.size()) state_->start_next();
  const torch::NoGradGuard no_grad;
  for (State::Bucket& bucket : state_->buckets) {
    if (bucket.work) bucket.work->wait();
    bucket.visit_parts([](const at::Tensor& parameter, const at::Tensor& part) {
      if (parameter.grad().defined()) parameter.mutable_grad().copy_(part);
    });
    bucket.work.reset();
    bucket.ready = 0;
  }
  state_->next = 0;
}

}  // namespace qact::dist
