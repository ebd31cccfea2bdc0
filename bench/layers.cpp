#include "bench/layers.h"

#include "bench/validate.h"

namespace qact::bench {

std::vector<std::vector<double>> time_side_by_side(const torch::Tensor& x, int repeats) {
  validate(x.size(1), x);
  const torch::Tensor grad = torch::randn_like(x);
  return interleave({training_step(nn::QuantileActivation(x.size(1)), x, grad),
                     training_step(BatchNormRelu(x.size(1)), x, grad)},
                    repeats);
}

}  // namespace qact::bench
