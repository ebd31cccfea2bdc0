#include "qact/dist/nccl.h"

namespace qact::dist {

bool has_nccl() { return false; }

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int, int) {
  return {};
}

}  // namespace qact::dist
