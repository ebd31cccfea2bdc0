// Operators of the package's Python half (python/qact/_cuda.py), called through torch's dispatcher.
#pragma once

#include <torch/csrc/stable/library.h>

#include <array>
#include <utility>

#include "python/ops/tensors.h"

namespace qact::python {

// Their results are so many tensors.
template <size_t kResults, class... Arguments>
std::array<Tensor, kResults> call_python(const char* name, const Arguments&... arguments) {
  using torch::stable::detail::from;
  std::array<StableIValue, sizeof...(Arguments)> stack{from(arguments)...};
  static_assert(sizeof...(Arguments) >= kResults);
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, "", stack.data(), TORCH_ABI_VERSION));
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Tensor, kResults>{torch::stable::detail::to<Tensor>(stack[kIndex])...};
  }(std::make_index_sequence<kResults>());
}

}  // namespace qact::python
