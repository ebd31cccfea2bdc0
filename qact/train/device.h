// The device that a network runs on.
#pragma once

#include <string>

namespace qact::train {

// Throws std::invalid_argument unless it is cpu, cuda or cuda:N; `where` is for the message.
void check_device_name(const char* where, const std::string& name);

// Throws unless torch sees the device of this name.
void check_device(const char* where, const std::string& name);

}  // namespace qact::train
