// Contexts blended on the CPU, many channels at a time.
#include "qact/core/context.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {

void context_blend(const ContextBlend& call, const Execution& execution) {
  constexpr int64_t kChannelsPerThread = 32;
  const cpu::TableKernels& tables = cpu::table_kernels(execution.simd);
  const int64_t a_units = context_units(call.a_values), b_units = context_units(call.b_values);
  execution.run(call.channels, kChannelsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t at = (begin + QACT_MUTANT("blend_first_channel")) * kContextBins;
         at < end * kContextBins; at += kContextBins) {
      const int64_t *a = call.a + at, *b = call.b + at;
      int64_t* blended = call.blended + at;
      if (tables.blend_short(a, a_units, b, b_units, blended)) continue;
      context_blend(ConstContextRow(a, kContextBins), call.a_values,
                    ConstContextRow(b, kContextBins), call.b_values,
                    ContextRow(blended, kContextBins));
    }
  });
}

}  // namespace qact::core
