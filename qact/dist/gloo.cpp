#include "qact/dist/gloo.h"

#include "qact/base/fail.h"

// torch's own header needs those of Gloo, which its package lacks.
#if __has_include(<gloo/rendezvous/store.h>)
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace qact::dist {

c10::intrusive_ptr<c10d::Backend> make_gloo(
    [[maybe_unused]] const c10::intrusive_ptr<c10d::Store>& store, [[maybe_unused]] int rank,
    int size, [[maybe_unused]] std::chrono::milliseconds patience) {
#ifdef USE_C10D_GLOO
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, rank, size, c10d::ProcessGroupGloo::Options::create_default(patience));
#else
  base::fail("dist", "expected a build with Gloo's headers to join ", size,
             " ranks, got one without: install libgloo-dev and build anew");
#endif
}

}  // namespace qact::dist
