// The running statistics and the running context of a layer, on the CPU.
#include "qact/core/cpu/narrow.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using cpu::bfloat16_bits;
using cpu::half_bits;
using cpu::narrow;
using cpu::widen;

double load(const float& v) { return v; }
double load(const double& v) { return v; }
double load(const bfloat16_bits& v) { return widen(v); }
double load(const half_bits& v) { return widen(v); }

void store(double v, float* out) { *out = static_cast<float>(v); }
void store(double v, double* out) { *out = v; }
void store(double v, bfloat16_bits* out) { *out = narrow<bfloat16_bits>(static_cast<float>(v)); }
void store(double v, half_bits* out) { *out = narrow<half_bits>(static_cast<float>(v)); }

// running += momentum * (factor * value - running)
template <class T>
void move(T* running, const double LayerStats::* value, const LayerTrack& call, double factor,
          double momentum) {
  const auto* stats = reinterpret_cast<const LayerStats*>(call.stats);
  for (int64_t c = 0; c < call.channels; ++c) {
    const double last = load(running[c]);
    store(last + momentum * (factor * stats[c].*value - last), &running[c]);
  }
}

void move(const RunningVector& running, const double LayerStats::* value, const LayerTrack& call,
          double factor, double momentum) {
  switch (running.dtype) {
    case DType::f32:
      return move(static_cast<float*>(running.data), value, call, factor, momentum);
    case DType::f64:
      return move(static_cast<double*>(running.data), value, call, factor, momentum);
    case DType::bf16:
      return move(static_cast<bfloat16_bits*>(running.data), value, call, factor, momentum);
    case DType::f16:
      return move(static_cast<half_bits*>(running.data), value, call, factor, momentum);
  }
}

}  // namespace

void layer_track(const LayerTrack& call, const Execution& execution) {
  const double unbiased = call.n / (call.n - !QACT_MUTANT("running_var_unbiased"));
  const double momentum = call.momentum;
  move(call.mean_in, &LayerStats::mean_in, call, 1,
       momentum * (QACT_MUTANT("running_mean_momentum") ? 1.01 : 1));
  move(call.var_in, &LayerStats::var_in, call, unbiased, momentum);
  move(call.mean_out, &LayerStats::mean_out, call, 1, momentum);
  move(call.var_out, &LayerStats::var_out, call, unbiased, momentum);
  const double remains = (QACT_MUTANT("running_context_kept") ? 1 : 1 - momentum) * call.values;
  context_blend(
      {call.channels, call.context, remains, call.batch, momentum * call.values, call.context},
      execution);
  ++*call.batches;
}

}  // namespace qact::core
