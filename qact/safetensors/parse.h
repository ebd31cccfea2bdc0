// Reads the safetensors format.
#pragma once

#include <string_view>

#include "qact/safetensors/format.h"

namespace qact::safetensors {

// The tensors of a whole file, as views into `bytes`. Throws std::runtime_error for everything that
// the format forbids; `file` is the name for the message.
Contents parse(base::Bytes bytes, std::string_view file);

}  // namespace qact::safetensors
