#include "qact/losses/consistency.h"

#include <ATen/ATen.h>

#include "qact/ops/checks.h"

namespace qact::losses {

at::Tensor jensen_shannon(const std::vector<at::Tensor>& logits) {
  TORCH_CHECK(logits.size() >= 2, "[jensen_shannon] expected 2 views or more, got ", logits.size());
  for (const at::Tensor& view : logits) {
    TORCH_CHECK(view.dim() == 2 && view.numel() > 0 && view.sizes() == logits[0].sizes(),
                "[jensen_shannon] expected logits (B,K) of the same shape, got ",
                ops::describe(logits[0]), " and ", ops::describe(view));
  }
  at::Tensor all = at::stack(logits);  // (V, B, K)
  if (all.scalar_type() != at::kDouble) all = all.to(at::kFloat);
  const at::Tensor log_p = at::log_softmax(all, 2), p = log_p.exp();
  const at::Tensor log_mean = p.mean(0).clamp(1e-7, 1).log();
  return (p * (log_p - log_mean)).sum(2).mean();
}

}  // namespace qact::losses
