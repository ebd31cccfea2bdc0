// The table that the operators are tested over: shapes, types and layouts.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

namespace qact::tests {

struct Layout {
  const char* name;
  std::function<torch::Tensor(const torch::Tensor&)> of;  // the same values, stored so
};

inline const std::vector<Layout>& layouts() {
  static const std::vector<Layout> table = {
      {"contiguous", [](const torch::Tensor& x) { return x.contiguous(); }},
      {"channels_last",
       [](const torch::Tensor& x) { return x.movedim(1, -1).contiguous().movedim(-1, 1); }},
      {"sliced",
       [](const torch::Tensor& x) {
         std::vector<int64_t> wider = x.sizes().vec();
         wider.back() += 3;
         torch::Tensor out = torch::full(wider, 7, x.options()).narrow(-1, 2, x.size(-1));
         out.copy_(x);
         return out;
       }},
      {"stepped",
       [](const torch::Tensor& x) {
         std::vector<int64_t> twice = x.sizes().vec();
         for (int64_t& size : twice) size *= 2;
         torch::Tensor out = torch::full(twice, 7, x.options());
         for (int64_t d = 0; d < x.dim(); ++d) out = out.slice(d, 0, std::nullopt, 2);
         out.copy_(x);
         return out;
       }},
      {"transposed",
       [](const torch::Tensor& x) { return x.transpose(-1, 0).contiguous().transpose(-1, 0); }},
      {"spatially transposed",
       [](const torch::Tensor& x) {
         return x.dim() < 4 ? x : x.transpose(-1, -2).contiguous().transpose(-1, -2);
       }},
  };
  return table;
}

// Sizes 1, 2, odd and large; the last two are beyond the exact algorithm's limit.
inline const std::vector<std::vector<int64_t>>& shapes() {
  static const std::vector<std::vector<int64_t>> table = {
      {1, 1},       {1, 3},          {2, 1},          {7, 5},   {3, 2, 1},    {5, 3, 7},
      {2, 3, 4, 5}, {3, 2, 2, 3, 5}, {1, 2, 1, 1, 3}, {700, 2}, {9, 3, 11, 8}};
  return table;
}

inline const std::vector<torch::ScalarType>& types() {
  static const std::vector<torch::ScalarType> table = {torch::kFloat, torch::kDouble,
                                                       torch::kBFloat16, torch::kHalf};
  return table;
}

inline std::vector<double> channel(const torch::Tensor& x, int64_t c) {
  const torch::Tensor flat = x.detach().select(1, c).to(torch::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

inline std::string describe(const torch::Tensor& x, const Layout& layout) {
  std::ostringstream out;
  out << x.scalar_type() << " " << x.sizes() << " " << layout.name;
  return out.str();
}

// |found - expected| / |expected|
inline double relative_error(const std::vector<double>& found,
                             const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / std::max(norm, 1e-300));
}

// The message of what `call` throws, up to torch's own lines; empty if it throws nothing.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace qact::tests
