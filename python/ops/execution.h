// How core runs on torch's threads.
#pragma once

#include <torch/csrc/stable/ops.h>

#include "qact/core/cpu/dispatch.h"
#include "qact/core/view.h"

namespace qact::python {

inline core::Execution cpu_execution() {
  core::Execution execution;
  execution.simd = core::cpu::choose_simd();
  execution.parallel = [](int64_t count, int64_t grain,
                          const std::function<void(int64_t, int64_t)>& body) {
    torch::stable::parallel_for(0, count, grain, body);
  };
  return execution;
}

}  // namespace qact::python
