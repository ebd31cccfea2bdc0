#include "qact/train/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

#include "qact/base/fail.h"

namespace qact::train {

void check_device_name(const char* where, const std::string& name) {
  if (std::regex_match(name, std::regex("cpu|cuda(:(0|[1-9][0-9]?))?"))) return;
  throw std::invalid_argument(std::string("[") + where +
                              "] expected --device cpu, cuda or cuda:N, got '" + name + "'");
}

void check_device(const char* where, const std::string& name) {
  const torch::Device device(name);
  const int64_t gpus = static_cast<int64_t>(torch::cuda::device_count());
  if (device.is_cpu() || (device.is_cuda() && std::max<int64_t>(device.index(), 0) < gpus)) return;
  base::fail(where, "expected --device cpu or one of the ", gpus, " GPUs that torch sees, got ",
             name);
}

c10::Device with_index(c10::Device device) {
  if (device.is_cpu() || device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace qact::train
