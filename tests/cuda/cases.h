// What the tests on the GPU share: the operators' table of layouts, the core's of
// distributions, and a comparison with the same operator on the CPU.
#pragma once

#include <torch/torch.h>

#include "tests/core/cases.h"
#include "tests/ops/cases.h"

namespace qact::tests {

// (B, C, ...) with a draw of its own for each channel.
inline torch::Tensor drawn(const std::vector<int64_t>& shape,
                           core::testing::Distribution distribution, uint64_t seed = 1) {
  std::vector<int64_t> rows = shape;
  std::swap(rows[0], rows[1]);
  torch::Tensor out = torch::empty(rows, torch::kDouble);
  const int64_t channels = shape[1], n = out.numel() / channels;
  for (int64_t c = 0; c < channels; ++c) {
    const auto values = core::testing::draw(distribution, n, seed + c);
    std::copy(values.begin(), values.end(), out.data_ptr<double>() + c * n);
  }
  return out.transpose(0, 1).contiguous();
}

// The share of values that differ by more than `slack`.
inline double differing(const torch::Tensor& a, const torch::Tensor& b, double slack) {
  const torch::Tensor x = a.cpu().to(torch::kDouble), y = b.cpu().to(torch::kDouble);
  const torch::Tensor same = ((x - y).abs() <= slack) | (x.isnan() & y.isnan());
  return 1.0 - same.to(torch::kDouble).mean().item<double>();
}

// Infinities and NaN are no error where they are expected.
inline double relative_error(const torch::Tensor& found, const torch::Tensor& expected) {
  const torch::Tensor f = found.cpu().to(torch::kDouble), e = expected.cpu().to(torch::kDouble);
  const torch::Tensor same = (f == e) | (f.isnan() & e.isnan());
  const torch::Tensor size = e.nan_to_num(0, 0, 0).norm().clamp_min(1e-300);
  return ((f - e).masked_fill(same, 0).norm() / size).item<double>();
}

inline torch::Tensor on_gpu(const torch::Tensor& x) {  // strides kept
  torch::Tensor out =
      torch::empty_strided(x.sizes(), x.strides(), x.options().device(torch::kCUDA));
  return out.copy_(x);
}

}  // namespace qact::tests
