#include "qact/core/context.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "qact/core/quantile.h"
#include "qact/ops/border.h"

namespace qact::ops {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

constexpr int64_t kChannelsPerThread = 32;

void check_context(const char* op, const char* name, const at::Tensor& context) {
  TORCH_CHECK(context.scalar_type() == at::kLong && context.dim() == 2 &&
                  context.size(1) == core::kContextBins,
              "[", op, "] expected ", name, " to be an int64 tensor of shape (channels,",
              core::kContextBins, "), got ", describe(context));
}

core::ConstContextRow row(const at::Tensor& context, int64_t channel) {
  return core::ConstContextRow(
      context.const_data_ptr<int64_t>() + channel * core::kContextBins, core::kContextBins);
}

at::Tensor build(const at::Tensor& x, const MaybeTensor& scale, const MaybeTensor& shift) {
  constexpr const char* kOp = "context_build";
  check_values(kOp, "x", x);
  check_channels(kOp, "scale", scale.value_or(at::Tensor()), x);
  check_channels(kOp, "shift", shift.value_or(at::Tensor()), x);
  const Folded in = fold(x);
  const FoldedVector s = fold_vector(scale.value_or(at::Tensor()));
  const FoldedVector t = fold_vector(shift.value_or(at::Tensor()));
  at::Tensor out = at::empty({x.size(1), core::kContextBins}, x.options().dtype(at::kLong));
  core::context_build({in.shape, in.view, s.vector, t.vector, out.data_ptr<int64_t>()},
                      cpu_execution());
  return out;
}

at::Tensor blend(const at::Tensor& a, double a_values, const at::Tensor& b, double b_values) {
  constexpr const char* kOp = "context_blend";
  check_context(kOp, "a", a);
  check_context(kOp, "b", b);
  TORCH_CHECK(a.sizes() == b.sizes(), "[", kOp, "] expected two contexts of as many channels, got ",
              describe(a), " and ", describe(b));
  for (const double values : {a_values, b_values}) {
    TORCH_CHECK(values >= 0 && values < 0x1.0p46, "[", kOp,
                "] expected a number of values in [0, 2^46), got ", values);
  }
  const at::Tensor first = a.contiguous(), second = b.contiguous();
  at::Tensor out = at::empty_like(first);
  int64_t* blended = out.data_ptr<int64_t>();
  cpu_execution().run(a.size(0), kChannelsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      core::context_blend(
          row(first, c), a_values, row(second, c), b_values,
          core::ContextRow(blended + c * core::kContextBins, core::kContextBins));
    }
  });
  return out;
}

at::Tensor context_quantiles(const at::Tensor& context, int64_t levels, double bound,
                             double positive_share) {
  constexpr const char* kOp = "context_quantiles";
  check_context(kOp, "context", context);
  const core::Quantile quantile =
      check_quantile(kOp, levels, bound, positive_share, 0.5, "exact");
  const at::Tensor rows = context.contiguous();
  at::Tensor out = at::empty({context.size(0), levels}, context.options().dtype(at::kDouble));
  double* quantiles = out.data_ptr<double>();
  cpu_execution().run(context.size(0), kChannelsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      core::context_quantiles(row(rows, c), quantile, quantiles + c * levels);
    }
  });
  return out;
}

// Everything that the two directions of quantile_apply share.
template <class Call>
struct Apply {
  Folded in;
  at::Tensor quantiles;
  FoldedVector scale, shift, out_scale;

  Apply(Call& call, const at::Tensor& x, const at::Tensor& q, const MaybeTensor& s,
        const MaybeTensor& t, const MaybeTensor& o) {
    constexpr const char* kOp = "quantile_apply";
    check_values(kOp, "x", x);
    TORCH_CHECK(at::isFloatingType(q.scalar_type()) && q.dim() == 2 && q.size(0) == x.size(1) &&
                    q.size(1) >= 2 && q.size(1) <= 65535,
                "[", kOp, "] expected quantiles to be a floating tensor of shape (", x.size(1),
                ",levels) with levels in 2..65535, got ", describe(q));
    check_channels(kOp, "scale", s.value_or(at::Tensor()), x);
    check_channels(kOp, "shift", t.value_or(at::Tensor()), x);
    check_channels(kOp, "out_scale", o.value_or(at::Tensor()), x);
    in = fold(x);
    quantiles = q.to(at::kDouble).contiguous();
    scale = fold_vector(s.value_or(at::Tensor()));
    shift = fold_vector(t.value_or(at::Tensor()));
    out_scale = fold_vector(o.value_or(at::Tensor()));
    call.levels = static_cast<int>(q.size(1));
    call.shape = in.shape;
    call.x = in.view;
    call.scale = scale.vector;
    call.shift = shift.vector;
    call.out_scale = out_scale.vector;
    call.quantiles = quantiles.template const_data_ptr<double>();
  }
};

at::Tensor apply(const at::Tensor& x, const at::Tensor& quantiles, const MaybeTensor& scale,
                 const MaybeTensor& shift, const MaybeTensor& out_scale,
                 const MaybeTensor& out_shift, double, bool quantised) {
  core::QuantileApply call;
  const Apply<core::QuantileApply> shared(call, x, quantiles, scale, shift, out_scale);
  check_channels("quantile_apply", "out_shift", out_shift.value_or(at::Tensor()), x);
  const FoldedVector last = fold_vector(out_shift.value_or(at::Tensor()));
  const Folded out = fold_empty_like(shared.in.tensor);
  call.quantised = quantised;
  call.out_shift = last.vector;
  call.y = out.view;
  core::quantile_apply(call, cpu_execution());
  return out.tensor;
}

std::tuple<at::Tensor, at::Tensor> apply_backward(const at::Tensor& grad_y, const at::Tensor& x,
                                                  const at::Tensor& quantiles,
                                                  const MaybeTensor& scale,
                                                  const MaybeTensor& shift,
                                                  const MaybeTensor& out_scale, double bandwidth) {
  core::QuantileApplyBackward call;
  const Apply<core::QuantileApplyBackward> shared(call, x, quantiles, scale, shift, out_scale);
  TORCH_CHECK(std::isfinite(bandwidth) && bandwidth > 0,
              "[quantile_apply] expected a finite bandwidth > 0, got ", bandwidth);
  const Folded grad = fold(grad_y), out = fold_empty_like(shared.in.tensor);
  at::Tensor affine = at::empty({x.size(1), 4}, x.options().dtype(at::kDouble));
  call.bandwidth = bandwidth;
  call.grad_y = grad.view;
  call.grad_x = out.view;
  call.grad_affine = affine.data_ptr<double>();
  core::quantile_apply_backward(call, cpu_execution());
  return {out.tensor, affine.t().contiguous()};
}

}  // namespace

TORCH_LIBRARY_IMPL(qact, CPU, m) {
  m.impl("context_build", build);
  m.impl("context_blend", blend);
  m.impl("context_quantiles", context_quantiles);
  m.impl("quantile_apply", apply);
  m.impl("quantile_apply_backward", apply_backward);
}

}  // namespace qact::ops
