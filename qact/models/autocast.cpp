#include "qact/models/autocast.h"

#include <ATen/autocast_mode.h>

namespace qact::models {

using namespace at::autocast;

Autocast::Autocast(c10::DeviceType device, bool on)
    : device_(device),
      on_(on),
      before_(is_autocast_enabled(device)),
      type_before_(get_autocast_dtype(device)) {
  if (!on_) return;
  set_autocast_enabled(device_, true);
  set_autocast_dtype(device_, at::kBFloat16);
  increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  // The cache holds weights in bfloat16; they change with the next step.
  if (decrement_nesting() == 0) clear_cache();
  set_autocast_enabled(device_, before_);
  set_autocast_dtype(device_, type_before_);
}

bool Autocast::is_on(c10::DeviceType device) { return is_autocast_enabled(device); }

}  // namespace qact::models
