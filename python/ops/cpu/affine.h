// The gradients of four vectors, as core's CPU kernels write them and as operators return them.
#pragma once

#include <vector>

#include "python/ops/tensors.h"

namespace qact::python {

// [channels][4] transposed to (4, channels), in the type of tables of x.
inline Tensor affine_rows(const std::vector<double>& gradients, const Tensor& x) {
  const int64_t channels = x.size(1);
  Tensor out = empty_beside(x, {4, channels}, table_type(x));
  const auto write = [&]<class Real>(Real* rows) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < 4; ++i) {
        rows[i * channels + c] = static_cast<Real>(gradients[4 * c + i]);
      }
    }
  };
  if (table_type(x) == ScalarType::Double) {
    write(static_cast<double*>(out.mutable_data_ptr()));
  } else {
    write(static_cast<float*>(out.mutable_data_ptr()));
  }
  return out;
}

}  // namespace qact::python
