#include "qact/safetensors/format.h"

#include <stdexcept>

namespace qact::safetensors {

void fail(std::string_view where, std::string_view expected, std::string_view got) {
  std::string message = "[safetensors] ";
  message.append(where).append(": expected ").append(expected).append(", got ").append(got);
  throw std::runtime_error(message);
}

int64_t byte_count(Type type, const std::vector<int64_t>& shape) {
  int64_t bytes = bytes_of(type);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

}  // namespace qact::safetensors
