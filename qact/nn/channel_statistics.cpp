#include "qact/nn/channel_statistics.h"

#include <vector>

#include "qact/ops/flatten.h"

namespace qact::nn {

std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x) {
  std::vector<int64_t> all_but_channels = {0};
  for (int64_t d = 2; d < x.dim(); ++d) all_but_channels.push_back(d);
  const int64_t correction = values_per_channel(x) > 1 ? 1 : 0;
  auto [var, mean] = torch::var_mean(x.to(ops::table_type(x)), all_but_channels, correction);
  return {var, mean};
}

}  // namespace qact::nn
