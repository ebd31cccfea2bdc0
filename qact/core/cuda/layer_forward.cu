// The fused layer's forward pass: at most four launches, one for short channels.
#include "qact/core/cuda/cuda.h"
#include "qact/core/cuda/forward.cuh"
#include "qact/core/cuda/launch.cuh"
#include "qact/core/cuda/passes.cuh"
#include "qact/core/cuda/small_launch.cuh"
#include "qact/core/mutant.h"

namespace qact::core::cuda {

bool reads(const Shape& shape, const View& view) { return order_of(shape, view) != Order::neither; }

bool alike(const Shape& shape, const View& a, const View& b) {
  return order_of(shape, a) == order_of(shape, b);
}

size_t forward_part_scratch(const ForwardPart& call) {
  if (small(call)) return 0;
  return Passes(call.contexts(), call.x, call.quantile).scratch();
}

void forward_part(const ForwardPart& call, const Stream& stream) {
  const Contexts contexts = call.contexts();
  SolveCall solve = layer_solve(call);
  if (QACT_MUTANT("cuda_layer_eps")) solve.eps = 0;
  solve.bias_out = call.bias_out;
  solve.table = call.table;
  solve.stats = call.stats;
  solve.context = call.context;
  with_type(call.x.dtype, [&]<class T>(Type<T>) {
    if (is_short(contexts, call.quantile)) {
      return run_short("quantile_layer", contexts, small_call<T>(call), solve, stream);
    }
    if (small(call)) return run_small<T>("quantile_layer", call, solve, stream);
    const Passes passes(contexts, call.x, call.quantile);
    passes.solve<T>("quantile_layer", call.x, solve, stream);
    passes.write<T>("quantile_layer", call, stream);
  });
}

}  // namespace qact::core::cuda
