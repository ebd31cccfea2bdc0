#include "qact/train/async_scalar.h"

#include <torch/torch.h>

namespace qact::train {

AsyncScalar::AsyncScalar(const torch::Tensor& value) : copied_(value.device()) {
  const auto memory = torch::dtype(torch::kDouble).pinned_memory(value.is_cuda());
  on_host_ = torch::empty({}, memory).copy_(value.detach(), /*non_blocking=*/true);
  copied_.record();
}

double AsyncScalar::get() {
  copied_.synchronize();
  return on_host_.item<double>();
}

}  // namespace qact::train
