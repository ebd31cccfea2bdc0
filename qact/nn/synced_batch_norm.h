// BatchNorm over the batches of several processes, in plain operations of torch on any device.
#pragma once

#include <torch/types.h>

#include <string>
#include <tuple>

namespace qact::nn {

// (y, mean, unbiased variance) of x, (B, C, ...), this rank's images, of which there may be none.
// The gradient of x is that of the sum of all ranks' losses; a rank's gradients of weight and bias
// are those of its own loss, as of torch's SyncBatchNorm. Two rounds forward, C + 1 and C numbers,
// and one backward, 2 C: sums in double.
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> synced_batch_norm(
    const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, double eps,
    const std::string& group);

}  // namespace qact::nn
