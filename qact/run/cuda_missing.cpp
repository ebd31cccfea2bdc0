// In a build without CUDA: nothing is recorded.
#include <c10/util/Exception.h>

#include "qact/run/recorded.h"

namespace qact::run {

struct Recorded::Graph {};

bool Recorded::available() { return false; }

Recorded::Recorded(const std::function<void()>&, const Recorded*) {
  TORCH_CHECK(false, "[recorded] expected a build of qact with CUDA, got one without");
}

Recorded::~Recorded() = default;

void Recorded::replay() {}

}  // namespace qact::run
