// Restores the state of a module at the end of a scope, also after an exception.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace qact::nn {

// Buffers (running statistics and contexts), context modes, momentum, train() or eval(), and which
// parameters require gradients. Of the parameters, the values of those that are listed.
class StateGuard {
 public:
  explicit StateGuard(torch::nn::Module& module, const std::vector<torch::Tensor>& parameters = {});
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  // Each restores one tensor or the options of one module.
  std::vector<std::function<void()>> restore_;
};

}  // namespace qact::nn
