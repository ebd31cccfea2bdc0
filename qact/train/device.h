// Where a network works.
#pragma once

#include <string>

namespace qact::train {

// Throws std::invalid_argument unless it is cpu, cuda or cuda:N; `where` is for the message.
void check_device_name(const char* where, const std::string& name);

// Throws unless torch sees this device.
void check_device(const char* where, const std::string& name);

}  // namespace qact::train
