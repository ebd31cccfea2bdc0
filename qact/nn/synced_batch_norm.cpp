#include "qact/nn/synced_batch_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "qact/ops/checks.h"
#include "qact/ops/flatten.h"
#include "qact/ops/process_group.h"

namespace qact::nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kSyncedName = "BatchNorm";

// Over all but the channels, in double.
Tensor sum_of(const Tensor& x) {
  std::vector<int64_t> all_but_channels = {0};
  for (int64_t d = 2; d < x.dim(); ++d) all_but_channels.push_back(d);
  return x.sum(all_but_channels, /*keepdim=*/false, torch::kDouble);
}

// A number per channel, to be combined with x.
Tensor beside(const Tensor& vector, const Tensor& x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = x.size(1);
  return vector.to(ops::table_type(x)).view(shape);
}

Tensor normalised(const Tensor& x, const Tensor& mean, const Tensor& inverse) {
  return (x - beside(mean, x)) * beside(inverse, x);
}

class SyncedBatchNorm : public torch::autograd::Function<SyncedBatchNorm> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, double eps, const std::string& name) {
    const ops::ProcessGroup group = ops::process_group(kSyncedName, name);
    const Tensor own = torch::full({1}, static_cast<double>(x.numel() / x.size(1)),
                                   x.options().dtype(torch::kDouble));
    const Tensor sums = torch::cat({sum_of(x), own});
    ops::all_reduce_sum(group, sums);
    const Tensor n = sums[-1];
    TORCH_CHECK(n.item<double>() > 1, "[", kSyncedName,
                "] expected more than one value per channel over all ranks to take statistics "
                "from, got ",
                n.item<double>(), " of ", ops::describe(x), " here");
    const Tensor mean = sums.narrow(0, 0, x.size(1)) / n;
    const Tensor squares = sum_of((x - beside(mean, x)).square());
    ops::all_reduce_sum(group, squares);
    const Tensor inverse = torch::rsqrt(squares / n + eps);
    context->save_for_backward({x, weight, mean, inverse, n});
    context->saved_data["group"] = name;
    const Tensor var = squares / (n - 1);
    const Tensor y = normalised(x, mean, inverse) * beside(weight, x) + beside(bias, x);
    context->mark_non_differentiable({mean, var});
    return {y.to(x.scalar_type()), mean, var};
  }

  // dx = weight inverse (dy - mean(dy) - xhat mean(dy xhat))
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &n = saved[4], &dy = grads[0];
    const int64_t channels = x.size(1);
    const Tensor xhat = normalised(x, saved[2], saved[3]);
    const Tensor sum_dy = sum_of(dy), sum_dy_xhat = sum_of(dy * xhat);
    const Tensor sums = torch::cat({sum_dy, sum_dy_xhat});
    ops::all_reduce_sum(ops::process_group(kSyncedName, context->saved_data["group"].toStringRef()),
                        sums);
    const Tensor means = sums / n;
    const Tensor dx = (dy - beside(means.narrow(0, 0, channels), x) -
                       xhat * beside(means.narrow(0, channels, channels), x)) *
                      beside(weight * saved[3], x);
    return {dx.to(x.scalar_type()), sum_dy_xhat.to(weight.scalar_type()),
            sum_dy.to(weight.scalar_type()), Tensor(), Tensor()};
  }
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> synced_batch_norm(const Tensor& x, const Tensor& weight,
                                                     const Tensor& bias, double eps,
                                                     const std::string& group) {
  const variable_list out = SyncedBatchNorm::apply(x, weight, bias, eps, group);
  return {out[0], out[1], out[2]};
}

}  // namespace qact::nn
