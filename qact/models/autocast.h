// Mixed precision for a scope, as torch.autocast: convolutions and matrix products in bfloat16,
// the rest by torch's own rules.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace qact::models {

class Autocast {
 public:
  // Does nothing where `on` is false.
  Autocast(c10::DeviceType device, bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  static bool is_on(c10::DeviceType device);

 private:
  const c10::DeviceType device_;
  const bool on_;
  const bool before_;
  const c10::ScalarType type_before_;
};

}  // namespace qact::models
