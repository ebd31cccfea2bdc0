// Throws std::runtime_error with a message of the form `[where] expected X, got Y`.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string_view>

namespace qact::base {

template <class... Parts>
[[noreturn]] void fail(std::string_view where, const Parts&... parts) {
  std::ostringstream message;
  message << '[' << where << "] ";
  (message << ... << parts);
  throw std::runtime_error(message.str());
}

}  // namespace qact::base
