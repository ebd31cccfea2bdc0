#include "qact/ops/layer_track.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>

#include "qact/ops/checks.h"
#include "qact/ops/context_impl.h"
#include "qact/ops/dispatch.h"
#include "qact/ops/flatten.h"
#include "qact/ops/layer_track_impl.h"

namespace qact::ops {
namespace {

using TrackSchema = void(at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&,
                         at::Tensor&, const at::Tensor&, const at::Tensor&, double, double, double);

}  // namespace

void layer_track(const RunningState& running, const LayerUpdate& update) {
  static const auto op = registered<TrackSchema>("qact::_layer_track");
  at::AutoDispatchBelowADInplaceOrView guard;  // nothing here has a gradient
  auto [mean_in, var_in, mean_out, var_out, context, batches] = running;
  op.call(mean_in, var_in, mean_out, var_out, context, batches, update.stats, update.batch,
          update.momentum, update.n, update.values);
}

void check_layer_track(const RunningState& running, const LayerUpdate& update) {
  constexpr const char* kOp = "layer_track";
  const Named as = {"context", running.context};
  check_context(kOp, "context", running.context);
  check_in_place(kOp, as);
  const c10::SymInt channels = running.context.sym_size(0);
  for (const Named& vector :
       {Named{"mean_in", running.mean_in}, Named{"var_in", running.var_in},
        Named{"mean_out", running.mean_out}, Named{"var_out", running.var_out}}) {
    check_vector(kOp, vector, channels, as);
    check_in_place(kOp, vector);
  }
  const at::Tensor& batches = running.batches;
  check_device(kOp, {"batches", batches}, as);
  TORCH_CHECK(batches.scalar_type() == at::kLong && batches.dim() == 0, "[", kOp,
              "] expected batches to be one int64, got ", describe(batches));
  check_table(kOp, {"stats", update.stats}, at::kDouble, channels, core::kLayerStats, as);
  check_like(kOp, {"batch", update.batch}, as);
  TORCH_CHECK(update.momentum >= 0 && update.momentum <= 1, "[", kOp,
              "] expected momentum in [0, 1], got ", update.momentum);
  TORCH_CHECK(std::isfinite(update.n) && update.n > 1, "[", kOp,
              "] expected a number n > 1 of values per channel, got ", update.n);
  check_effective_count(kOp, update.values);
}

core::LayerTrack layer_track_call(const RunningState& running, const LayerUpdate& update) {
  const auto vector = [](const at::Tensor& v) {
    return core::RunningVector{v.data_ptr(), dtype_of(v)};
  };
  core::LayerTrack call;
  call.channels = running.context.size(0);
  call.mean_in = vector(running.mean_in);
  call.var_in = vector(running.var_in);
  call.mean_out = vector(running.mean_out);
  call.var_out = vector(running.var_out);
  call.context = running.context.data_ptr<int64_t>();
  call.batches = running.batches.data_ptr<int64_t>();
  call.n = update.n;
  call.momentum = update.momentum;
  call.values = update.values;
  return call;
}

namespace {

void track_meta(const RunningState&, const LayerUpdate&) {}

}  // namespace

TORCH_LIBRARY_FRAGMENT(qact, m) {
  m.def(
      "_layer_track(Tensor(a!) mean_in, Tensor(b!) var_in, Tensor(c!) mean_out, "
      "Tensor(d!) var_out, Tensor(e!) context, Tensor(f!) batches, Tensor stats, Tensor batch, "
      "float momentum, float n, float values) -> ()");
}

TORCH_LIBRARY_IMPL(qact, Meta, m) { m.impl("_layer_track", layer_track_entry<track_meta>); }

}  // namespace qact::ops
