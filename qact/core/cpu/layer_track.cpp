// The running statistics and the running context of a layer, on the CPU.
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using namespace cpu;

// running += momentum * (factor * value - running)
void move(const RunningVector& running, const double LayerStats::* value, const LayerTrack& call,
          double factor, double momentum, Simd simd) {
  const auto* stats = reinterpret_cast<const LayerStats*>(call.stats);
  const RunBlock all{1, 1, call.channels, 0, 0, 1, 0};
  with_real(running.dtype, [&]<class Real>(Real) {
    const TensorKernels<Real>& kernels = tensor_kernels<Real>(simd);
    std::vector<Real> moved(call.channels);
    kernels.pack(running.data, running.dtype, all, moved.data());
    for (int64_t c = 0; c < call.channels; ++c) {
      const double last = moved[c];
      moved[c] = static_cast<Real>(last + momentum * (factor * stats[c].*value - last));
    }
    kernels.unpack(moved.data(), all, running.dtype, running.data);
  });
}

}  // namespace

void layer_track(const LayerTrack& call, const Execution& execution) {
  const double unbiased = call.n / (call.n - !QACT_MUTANT("running_var_unbiased"));
  const double momentum = call.momentum;
  const auto move_to = [&](const RunningVector& running, const double LayerStats::* value,
                           double factor,
                           double by) { move(running, value, call, factor, by, execution.simd); };
  move_to(call.mean_in, &LayerStats::mean_in, 1,
          momentum * (QACT_MUTANT("running_mean_momentum") ? 1.01 : 1));
  move_to(call.var_in, &LayerStats::var_in, unbiased, momentum);
  move_to(call.mean_out, &LayerStats::mean_out, 1, momentum);
  move_to(call.var_out, &LayerStats::var_out, unbiased, momentum);
  const double remains = (QACT_MUTANT("running_context_kept") ? 1 : 1 - momentum) * call.values;
  context_blend(
      {call.channels, call.context, remains, call.batch, momentum * call.values, call.context},
      execution);
  ++*call.batches;
}

}  // namespace qact::core
