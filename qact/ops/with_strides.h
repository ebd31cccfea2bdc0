// A tensor laid out anew. In a header alone, for libraries beside qact's own.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/SymIntArrayRef.h>

namespace qact::ops {

// The same values with those strides: x itself where it has them.
inline at::Tensor with_strides(const at::Tensor& x, c10::SymIntArrayRef strides) {
  if (x.sym_strides() == strides) return x;
  at::Tensor once = x;  // what an expanded tensor repeats
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (strides[d] == 0) once = once.narrow(d, 0, 1);
  }
  return at::empty_strided_symint(once.sym_sizes(), strides, x.options())
      .copy_(once)
      .expand_symint(x.sym_sizes());
}

}  // namespace qact::ops
