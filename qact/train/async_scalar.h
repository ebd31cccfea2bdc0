// A number on a device that the host will need later.
#pragma once

#include <torch/types.h>

#include "qact/train/event.h"

namespace qact::train {

class AsyncScalar {
 public:
  // Starts the copy to the host at once: get() then does not wait for work that the stream is given
  // later.
  explicit AsyncScalar(const torch::Tensor& value);
  double get();

 private:
  Event copied_;
  torch::Tensor on_host_;
};

}  // namespace qact::train
