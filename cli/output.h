// The standard output of what may be long: why it was lost is kept until the end.
#pragma once

#include <string>

namespace qact::cli {

void print(const std::string& text);

// Whether all that was printed arrived, and else the system's word for why not.
struct Delivery {
  bool complete = true;
  std::string reason;
};
Delivery deliver_output();

}  // namespace qact::cli
