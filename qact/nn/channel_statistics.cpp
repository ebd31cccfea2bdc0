#include "qact/nn/channel_statistics.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "qact/ops/flatten.h"
#include "qact/ops/process_group.h"

namespace qact::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kStatistics = "channel_statistics";

class SumOverRanks : public torch::autograd::Function<SumOverRanks> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& own,
                               const std::string& group) {
    context->saved_data["group"] = group;
    torch::Tensor sum = own.clone();
    ops::all_reduce_sum(ops::process_group(kStatistics, group), sum);
    return sum;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    torch::Tensor sum = grads[0].contiguous().clone();
    ops::all_reduce_sum(ops::process_group(kStatistics, context->saved_data["group"].toStringRef()),
                        sum);
    return {sum, torch::Tensor()};
  }
};

std::vector<int64_t> all_but_channels(const torch::Tensor& x) {
  std::vector<int64_t> out = {0};
  for (int64_t d = 2; d < x.dim(); ++d) out.push_back(d);
  return out;
}

}  // namespace

BatchSize batch_size(const torch::Tensor& x, const std::string& group) {
  BatchSize size{static_cast<double>(x.size(0)), values_per_channel(x)};
  if (!group.empty()) {
    const torch::Tensor sizes =
        torch::tensor({size.images, size.values}, torch::kDouble).to(x.device());
    ops::all_reduce_sum(ops::process_group(kStatistics, group), sizes);
    const torch::Tensor found = sizes.cpu();
    size = {found[0].item<double>(), found[1].item<double>()};
  }
  TORCH_CHECK(size.images > 0, "[", kStatistics, "] expected images",
              group.empty() ? "" : " on any rank", " to take statistics from, got none");
  return size;
}

std::pair<torch::Tensor, torch::Tensor> channel_statistics(const torch::Tensor& x,
                                                           const BatchSize& size,
                                                           const std::string& group) {
  const std::vector<int64_t> dimensions = all_but_channels(x);
  const int64_t correction = size.values > 1 ? 1 : 0;
  if (group.empty()) {
    auto [var, mean] = torch::var_mean(x.to(ops::table_type(x)), dimensions, correction);
    return {var, mean};
  }
  const auto sum = [&](const torch::Tensor& values) {
    return SumOverRanks::apply(values.sum(dimensions, /*keepdim=*/true), group);
  };
  const torch::Tensor wide = x.to(torch::kDouble);
  const torch::Tensor mean = sum(wide) / size.values;
  const torch::Tensor var = sum((wide - mean).square()) / (size.values - correction);
  return {var.flatten().to(ops::table_type(x)), mean.flatten().to(ops::table_type(x))};
}

}  // namespace qact::nn
