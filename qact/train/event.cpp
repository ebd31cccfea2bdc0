#include "qact/train/event.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace qact::train {

Event::Event(c10::Device device) : device_(device) {
  if (!device.is_cpu()) event_.emplace(device.type());
}

void Event::record() {
  if (event_) event_->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

void Event::synchronize() {
  if (event_ && event_->was_marked_for_recording()) event_->synchronize();
}

}  // namespace qact::train
