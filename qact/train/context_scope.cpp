#include "qact/train/context_scope.h"

#include "qact/base/fail.h"

namespace qact::train {

std::string resolved_context_scope(const std::string& scope, const dist::World& world) {
  if (scope != "auto") return scope;
  return world.alone() ? "world" : "batch";
}

void set_context_scope(torch::nn::Module&, const std::string& scope, const dist::World& world) {
  if (world.alone() || scope == "batch") return;
  base::fail("train",
             "expected --context-scope batch with several ranks: contexts cannot be joined "
             "yet, got ",
             scope);
}

}  // namespace qact::train
