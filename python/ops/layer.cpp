#include "python/ops/layer.h"

#include <cmath>

#include "qact/core/context.h"

namespace qact::python {
namespace {

constexpr const char* kBackward = "quantile_layer_backward";

// The scope fits x, and every context has more than one value, so that it has a variance.
void check_scope(const char* op, const Tensor& x, const core::Scope& scope) {
  const int64_t channels = x.size(1);
  QACT_EXPECT(scope.image_channels >= 0 && scope.image_channels <= channels, "[", op,
              "] expected image_channels in 0..", channels, ", the channels of x, got ",
              scope.image_channels);
  QACT_EXPECT(scope.images >= 0, "[", op, "] expected context_images >= 0, got ", scope.images);
  if (scope.image_channels == 0 && scope.images == 0) return;
  const int64_t batch = x.size(0), spatial = x.numel() / (batch * channels);
  const int64_t least = scope.image_channels > 0 || scope.images == 1 ? 1
                        : scope.images == 0                           ? batch
                        : batch % scope.images > 0                    ? batch % scope.images
                                                                      : scope.images;
  QACT_EXPECT(least * spatial > 1, "[", op,
              "] expected more than one value per context to take statistics from, got contexts "
              "of one image with one value, in ",
              describe(x));
}

core::Quantile check_common(const char* op, const Tensor& x, const LayerVectors& vectors,
                            const LayerSettings& settings) {
  check_statistics(op, x);
  check_scope(op, x, settings.scope());
  check_positive(op, "eps", settings.eps);
  check_channels(op, "weight_in", vectors.weight_in, x);
  check_channels(op, "bias_in", vectors.bias_in, x);
  check_channels(op, "weight_out", vectors.weight_out, x);
  check_channels(op, "bias_out", vectors.bias_out, x);
  return check_quantile(op, settings.levels, settings.bound, settings.positive_share,
                        settings.bandwidth, settings.algorithm, kMostLayerLevels);
}

}  // namespace

core::Quantile check_layer(const Tensor& x, const LayerVectors& vectors,
                           const LayerSettings& settings) {
  return check_common("quantile_layer", x, vectors, settings);
}

core::Quantile check_layer_backward(const Tensor& grad_y, const LayerVectors& vectors,
                                    const LayerSettings& settings) {
  return check_common(kBackward, grad_y, vectors, settings);
}

void check_kept(const Tensor& grad_y, const MaybeTensor& x, const Tensor& kept, const Tensor& stats,
                const LayerSettings& settings, const Wanted& wanted) {
  const Named as = {"grad_y", grad_y};
  if (x) check_like(kBackward, {"x", *x}, as);
  check_device(kBackward, {"kept", kept}, as);
  QACT_EXPECT(type_of(kept) == ScalarType::Byte && kept.is_contiguous() &&
                  kept.numel() == wanted.kept_bytes,
              "[", kBackward, "] expected kept to be ", wanted.kept_bytes,
              " bytes, as the forward pass left it, got ", describe(kept));
  const int64_t rows = grad_y.size(1) - settings.image_channels;
  check_table(kBackward, {"stats", stats}, ScalarType::Double, rows, core::kLayerStats, as);
  QACT_EXPECT(x || !wanted.x, "[", kBackward,
              "] expected x, which is needed beside what was kept, got none");
}

void check_track(const TrackArguments& a) {
  constexpr const char* kOp = "layer_track";
  const Named as = {"context", a.context};
  check_context(kOp, as);
  check_in_place(kOp, as);
  const int64_t channels = a.context.size(0);
  for (const Named& vector : {Named{"mean_in", a.mean_in}, Named{"var_in", a.var_in},
                              Named{"mean_out", a.mean_out}, Named{"var_out", a.var_out}}) {
    check_vector(kOp, vector, channels, as);
    check_in_place(kOp, vector);
  }
  check_device(kOp, {"batches", a.batches}, as);
  QACT_EXPECT(type_of(a.batches) == ScalarType::Long && a.batches.dim() == 0, "[", kOp,
              "] expected batches to be one int64, got ", describe(a.batches));
  check_table(kOp, {"stats", a.stats}, ScalarType::Double, channels, core::kLayerStats, as);
  check_like(kOp, {"batch", a.batch}, as);
  QACT_EXPECT(!a.momentum || (*a.momentum >= 0 && *a.momentum <= 1), "[", kOp,
              "] expected momentum in [0, 1], got ", a.momentum.value_or(0));
  QACT_EXPECT(a.n > 1, "[", kOp, "] expected a number n > 1 of values per channel, got ", a.n);
  QACT_EXPECT(a.context_images > 0 && a.context_images <= a.images, "[", kOp,
              "] expected context_images in 1..", a.images, ", the images, got ", a.context_images);
  QACT_EXPECT(static_cast<double>(a.n) * static_cast<double>(a.context_images) >
                  static_cast<double>(a.images),
              "[", kOp,
              "] expected more than one value per context, which has no variance else, got ", a.n,
              " values per channel of ", a.images, " images, in contexts of ", a.context_images);
}

core::LayerTrack track_call(const TrackArguments& a) {
  core::LayerTrack call;
  call.channels = a.context.size(0);
  call.mean_in = running_vector(a.mean_in);
  call.var_in = running_vector(a.var_in);
  call.mean_out = running_vector(a.mean_out);
  call.var_out = running_vector(a.var_out);
  call.context = static_cast<int64_t*>(a.context.mutable_data_ptr());
  call.batches = static_cast<int64_t*>(a.batches.mutable_data_ptr());
  const double n = static_cast<double>(a.n);
  call.n = static_cast<double>(a.context_images) / static_cast<double>(a.images) * n;
  call.values = core::effective_count(n);
  return call;
}

}  // namespace qact::python
