// A network that is the same after some work as before it.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace qact::eval {

// While one lives, a module's statistics, contexts, context modes and train() or eval() may
// change; at its end, by an exception as well, all are as they were. Parameters are not kept.
class StateGuard {
 public:
  explicit StateGuard(torch::nn::Module& module);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  // Each puts back one tensor or one module's settings.
  std::vector<std::function<void()>> restore_;
};

}  // namespace qact::eval
