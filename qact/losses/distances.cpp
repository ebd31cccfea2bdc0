#include "qact/losses/distances.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace qact::losses {

at::Tensor pairwise_distances(const at::Tensor& embedding) {
  constexpr int64_t kWithoutMatrixProducts = 2;
  const at::NoGradGuard no_grad;
  const at::Tensor e = embedding.detach().contiguous();
  return at::cdist(e, e, 2.0, kWithoutMatrixProducts);
}

}  // namespace qact::losses
