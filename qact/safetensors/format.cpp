#include "qact/safetensors/format.h"

#include "qact/base/fail.h"

namespace qact::safetensors {

void fail(std::string_view where, std::string_view expected, std::string_view got) {
  base::fail("safetensors", where, ": expected ", expected, ", got ", got);
}

int64_t byte_count(Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = item_bytes(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

}  // namespace qact::safetensors
