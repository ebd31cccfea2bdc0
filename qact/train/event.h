// A point in the work of a device's stream that the host can wait for, as torch.cuda.Event. On the
// CPU, where work is done when a call returns, it does nothing.
#pragma once

#include <c10/core/Event.h>

#include <optional>

namespace qact::train {

class Event {
 public:
  explicit Event(c10::Device device);

  // Puts the event behind all work that the current stream has so far.
  void record();
  // Waits until the work before the event is done. Returns at once where none was recorded.
  void synchronize();

 private:
  c10::Device device_;
  std::optional<c10::Event> event_;
};

}  // namespace qact::train
