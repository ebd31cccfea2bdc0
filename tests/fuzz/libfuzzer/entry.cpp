// libFuzzer's entry for the target that the build names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* target = [] {
    for (const auto& candidate : qact::fuzz::targets()) {
      if (candidate.name == QACT_FUZZ_TARGET) return &candidate;
    }
    __builtin_trap();
  }();
  target->run({data, size});
  return 0;
}
