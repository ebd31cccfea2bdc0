// Where a network works.
#pragma once

#include <string>

namespace qact::train {

// Throws unless torch sees this device; `where` is for the message.
void check_device(const char* where, const std::string& name);

}  // namespace qact::train
