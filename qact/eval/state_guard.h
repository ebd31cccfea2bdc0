// Restores the state of a module at the end of a scope, also after an exception.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace qact::eval {

// Buffers (running statistics and contexts), context modes, momentum, and train() or eval(). Not
// the parameters.
class StateGuard {
 public:
  explicit StateGuard(torch::nn::Module& module);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  // Each restores one tensor or the options of one module.
  std::vector<std::function<void()>> restore_;
};

}  // namespace qact::eval
