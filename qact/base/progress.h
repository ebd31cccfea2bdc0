// How long-running work reports to its caller.
#pragma once

#include <functional>

namespace qact::base {

// Called on the caller's thread with the fraction done, in [0, 1]. Returning false stops the work.
using Progress = std::function<bool(double fraction)>;

}  // namespace qact::base
