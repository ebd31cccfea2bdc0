#include "qact/ops/layer_track.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <torch/library.h>

#include <cmath>

#include "qact/core/mutant.h"
#include "qact/core/quantile.h"
#include "qact/ops/checks.h"
#include "qact/ops/context.h"
#include "qact/ops/dispatch.h"

namespace qact::ops {

void layer_track(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out, at::Tensor& var_out,
                 at::Tensor& context, at::Tensor& batches, const at::Tensor& stats,
                 const at::Tensor& batch, double momentum, double n, double values) {
  static const auto op = registered<decltype(layer_track)>("qact::layer_track");
  at::AutoDispatchBelowADInplaceOrView guard;  // nothing here has a gradient
  op.call(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n, values);
}

void check_layer_track(const at::Tensor& mean_in, const at::Tensor& var_in,
                       const at::Tensor& mean_out, const at::Tensor& var_out,
                       const at::Tensor& context, const at::Tensor& batches,
                       const at::Tensor& stats, const at::Tensor& batch, double momentum, double n,
                       double values) {
  constexpr const char* kOp = "layer_track";
  const Named as = {"context", context};
  check_context(kOp, "context", context);
  check_in_place(kOp, as);
  const c10::SymInt channels = context.sym_size(0);
  for (const Named& running : {Named{"mean_in", mean_in}, Named{"var_in", var_in},
                               Named{"mean_out", mean_out}, Named{"var_out", var_out}}) {
    check_vector(kOp, running, channels, as);
    check_in_place(kOp, running);
  }
  check_device(kOp, {"batches", batches}, as);
  TORCH_CHECK(batches.scalar_type() == at::kLong && batches.dim() == 0, "[", kOp,
              "] expected batches to be one int64, got ", describe(batches));
  check_table(kOp, {"stats", stats}, at::kDouble, channels, core::kLayerStats, as);
  check_like(kOp, {"batch", batch}, as);
  TORCH_CHECK(momentum >= 0 && momentum <= 1, "[", kOp, "] expected momentum in [0, 1], got ",
              momentum);
  TORCH_CHECK(std::isfinite(n) && n > 1, "[", kOp,
              "] expected a number n > 1 of values per channel, got ", n);
  check_effective_count(kOp, values);
}

namespace {

// running += momentum * (factor * stats[:, column] - running), in one loop: for a vector of this
// size every operator of torch costs more than its arithmetic.
void keep(at::Tensor& running, const at::Tensor& stats, int64_t column, double factor,
          double momentum) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, running.scalar_type(), "layer_track", [&] {
        const auto value = stats.accessor<double, 2>();
        auto kept = running.accessor<scalar_t, 1>();
        for (int64_t c = 0; c < kept.size(0); ++c) {
          const double last = static_cast<double>(kept[c]);
          kept[c] = static_cast<scalar_t>(last + momentum * (factor * value[c][column] - last));
        }
      });
}

void track_cpu(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out, at::Tensor& var_out,
               at::Tensor& context, at::Tensor& batches, const at::Tensor& stats,
               const at::Tensor& batch, double momentum, double n, double values) {
  check_layer_track(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
                    values);
  const double unbiased = n / (n - !QACT_MUTANT("running_var_unbiased"));
  keep(mean_in, stats, 0, 1, momentum * (QACT_MUTANT("running_mean_momentum") ? 1.01 : 1));
  keep(var_in, stats, 1, unbiased, momentum);
  keep(mean_out, stats, 2, 1, momentum);
  keep(var_out, stats, 3, unbiased, momentum);
  const double kept = (QACT_MUTANT("running_context_kept") ? 1 : 1 - momentum) * values,
               added = momentum * values;
  const at::Tensor batch_rows = batch.contiguous();
  int64_t* counts = context.data_ptr<int64_t>();
  core::context_blend(
      {context.size(0), counts, kept, batch_rows.const_data_ptr<int64_t>(), added, counts},
      cpu_execution());
  ++*batches.data_ptr<int64_t>();
}

void track_meta(at::Tensor& mean_in, at::Tensor& var_in, at::Tensor& mean_out, at::Tensor& var_out,
                at::Tensor& context, at::Tensor& batches, const at::Tensor& stats,
                const at::Tensor& batch, double momentum, double n, double values) {
  check_layer_track(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
                    values);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "layer_track(Tensor(a!) mean_in, Tensor(b!) var_in, Tensor(c!) mean_out, "
      "Tensor(d!) var_out, Tensor(e!) context, Tensor(f!) batches, Tensor stats, Tensor batch, "
      "float momentum, float n, float values) -> ()");
}

TORCH_LIBRARY_IMPL(qact, CPU, m) { m.impl("layer_track", track_cpu); }

TORCH_LIBRARY_IMPL(qact, Meta, m) { m.impl("layer_track", track_meta); }

}  // namespace qact::ops
