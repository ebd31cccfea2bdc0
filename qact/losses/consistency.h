// A loss between the predictions for several views of the same images.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace qact::losses {

// The Jensen-Shannon divergence of AugMix (Hendrycks et al. 2020) for V tensors of logits (B, K):
// the mean over views v and images of KL(p_v || m), where p_v = softmax(logits_v) and m, at least
// 1e-7, is the mean of the p_v.
at::Tensor jensen_shannon(const std::vector<at::Tensor>& logits);

}  // namespace qact::losses
