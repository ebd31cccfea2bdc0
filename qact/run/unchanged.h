// A network that is the same after some work as before it.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace qact::run {

// While one lives, a module's statistics, contexts, context modes and train() or eval() may
// change; at its end, by an exception as well, all are as they were. Parameters are not kept.
class Unchanged {
 public:
  explicit Unchanged(torch::nn::Module& module);
  ~Unchanged();
  Unchanged(const Unchanged&) = delete;
  Unchanged& operator=(const Unchanged&) = delete;

 private:
  // Each puts back one tensor or one module's settings.
  std::vector<std::function<void()>> restore_;
};

}  // namespace qact::run
