// The gradients of four vectors, as core's CPU kernels write them and as operators return them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <vector>

#include "qact/ops/flatten.h"

namespace qact::ops {

// [channels][4] transposed to (4, channels), in the type of tables of x. For so few
// numbers each operator of torch costs more than its arithmetic.
inline at::Tensor affine_rows(const std::vector<double>& gradients, const at::Tensor& x) {
  const int64_t channels = x.size(1);
  at::Tensor out = empty_beside(x, {4, channels}, table_type(x));
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "affine_rows", [&] {
    auto* rows = out.data_ptr<scalar_t>();
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < 4; ++i) {
        rows[i * channels + c] = static_cast<scalar_t>(gradients[4 * c + i]);
      }
    }
  });
  return out;
}

}  // namespace qact::ops
