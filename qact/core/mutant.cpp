#include "qact/core/mutant.h"

#ifdef QACT_MUTANTS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace qact::core {
namespace {

const char* chosen() {
  const char* name = std::getenv("QACT_MUTANT");
  return name && *name ? name : nullptr;
}

struct Reached {
  std::atomic<bool> yes = false;
  ~Reached() {
    if (chosen() && !yes) std::fprintf(stderr, "QACT_MUTANT=%s was never reached\n", chosen());
  }
} reached;

std::vector<int (*)()>& device_constants() {
  static std::vector<int (*)()> all;
  return all;
}

}  // namespace

const uint64_t active_mutant = chosen() ? mutant_id(chosen()) : 0;

bool reach_mutant() {
  reached.yes.store(true, std::memory_order_relaxed);
  return true;
}

bool list_device_mutant(int (*set)()) {
  device_constants().push_back(set);
  return true;
}

void set_device_mutant() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const auto set : device_constants()) {
      if (const int error = set()) {
        throw std::runtime_error("[QACT_MUTANT] expected to set a device's constant, got error " +
                                 std::to_string(error));
      }
    }
  });
}

}  // namespace qact::core
#endif
