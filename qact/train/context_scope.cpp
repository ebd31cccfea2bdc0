#include "qact/train/context_scope.h"

#include "qact/dist/dist.h"
#include "qact/nn/process_group.h"

namespace qact::train {

std::string resolved_context_scope(const std::string& scope) {
  return scope == "auto" ? "world" : scope;
}

void set_context_scope(torch::nn::Module& network, const std::string& scope,
                       const dist::World& world) {
  if (world.alone()) return;
  nn::set_process_group(network, scope == "world" ? dist::kWorld : "");
}

}  // namespace qact::train
