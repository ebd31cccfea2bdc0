// A place in a device's queue of work that the host can wait for. On the CPU, where nothing is
// queued, it does nothing.
#pragma once

#include <c10/core/Event.h>

#include <optional>

namespace qact::train {

class Event {
 public:
  explicit Event(c10::Device device);

  // Behind all that the current stream was given so far.
  void set();
  // Until all that was before it is done.
  void wait();

 private:
  c10::Device device_;
  std::optional<c10::Event> event_;
};

}  // namespace qact::train
