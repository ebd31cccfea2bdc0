// Where a network works.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace qact::train {

// Throws std::invalid_argument unless it is cpu, cuda or cuda:N; `where` is for the message.
void check_device_name(const char* where, const std::string& name);

// Throws unless torch sees this device.
void check_device(const char* where, const std::string& name);

// "cuda" alone is this thread's current GPU, under torchrun that of the local rank. Other threads
// have another one, so they are to be given its index.
c10::Device with_index(c10::Device device);

}  // namespace qact::train
