#include "qact/ops/reshaped_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "qact/core/context.h"
#include "qact/ops/flatten.h"

namespace qact::ops {
namespace {

// Channels [first, first + count) of all that belongs to a channel, each `times` over.
LayerAffine channels_of(const LayerAffine& affine, int64_t first, int64_t count, int64_t times) {
  const auto part = [&](const MaybeTensor& vector) -> MaybeTensor {
    if (!vector) return std::nullopt;
    return vector->narrow(0, first, count).repeat({times});
  };
  return {part(affine.weight_in), part(affine.bias_in), part(affine.weight_out),
          part(affine.bias_out)};
}

// (B, C, ...) as (1, B * C, ...): every image's channels become channels of one image.
at::Tensor as_channels(const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] *= std::exchange(shape[0], 1);
  return x.contiguous().view(shape);
}

// 0: the whole batch.
int64_t images_of(const core::Scope& scope, int64_t batch) {
  return scope.images < batch ? scope.images : 0;
}

LayerOptions in_batch(LayerOptions options, bool track) {
  options.scope = {};
  options.track = track;
  return options;
}

// visit(first, images) for each of the contexts of some images.
void for_each_group(const at::Tensor& x, int64_t images,
                    const std::function<void(int64_t, int64_t)>& visit) {
  for (int64_t first = 0; first < x.size(0); first += images) {
    visit(first, std::min(images, x.size(0) - first));
  }
}

// The forward and the backward pass of a batch, for what only the latter needs.
std::tuple<at::Tensor, at::Tensor> backward_again(const at::Tensor& grad_y, const at::Tensor& x,
                                                  const LayerAffine& affine,
                                                  const LayerOptions& options) {
  const Keep keep = keep_for(x.device());
  const LayerResult forward = quantile_layer_forward(x, affine, options, keep);
  const at::Tensor grad = at::empty_like(forward.y).copy_(grad_y);  // codes may lie in its order
  return quantile_layer_backward(grad, {keep, x, forward.code, forward.table, forward.stats},
                                 affine, options);
}

}  // namespace

LayerResult forward_by_reshaping(const at::Tensor& x, const LayerAffine& affine,
                                 const LayerOptions& options, Keep keep) {
  check_layer(x, affine, options);
  const int64_t batch = x.size(0), images = images_of(options.scope, batch);
  const int64_t image_channels = options.scope.image_channels, rows = x.size(1) - image_channels;
  at::Tensor y = at::empty_like(x);
  if (image_channels > 0) {
    at::Tensor out = y.narrow(1, 0, image_channels);
    out.copy_(quantile_layer_forward(as_channels(x.narrow(1, 0, image_channels)),
                                     channels_of(affine, 0, image_channels, batch),
                                     in_batch(options, false), Keep::nothing)
                  .y.view(out.sizes()));
  }
  const auto table = [&](int64_t of, int64_t columns, at::ScalarType type) {
    return at::zeros({of, columns}, x.options().dtype(type));
  };
  const KeptSizes sizes = kept_sizes(keep, x, options.scope);
  LayerResult result{y, table(0, sizes.code_columns.expect_int(), at::kByte),
                     table(0, sizes.table_columns.expect_int(), at::kInt),
                     table(rows, core::kLayerStats, at::kDouble),
                     options.track ? table(rows, core::kContextBins, at::kLong)
                                   : at::empty({0}, x.options().dtype(at::kLong))};
  if (rows == 0) return result;
  const at::Tensor others = x.narrow(1, image_channels, rows);
  at::Tensor out = y.narrow(1, image_channels, rows);
  const LayerAffine own = channels_of(affine, image_channels, rows, 1);
  const LayerOptions batch_options = in_batch(options, options.track);
  if (images == 0) {
    LayerResult of = quantile_layer_forward(others, own, batch_options,
                                            sizes.code_rows > 0 ? keep : Keep::nothing);
    out.copy_(of.y);
    of.y = y;
    return of;
  }
  for_each_group(x, images, [&](int64_t first, int64_t count) {
    const LayerResult of =
        quantile_layer_forward(others.narrow(0, first, count), own, batch_options, Keep::nothing);
    out.narrow(0, first, count).copy_(of.y);
    result.stats.add_(of.stats, static_cast<double>(count) / static_cast<double>(batch));
    if (options.track) result.context.add_(of.context);
  });
  return result;
}

std::tuple<at::Tensor, at::Tensor> backward_by_reshaping(const at::Tensor& grad_y,
                                                         const LayerKept& kept,
                                                         const LayerAffine& affine,
                                                         const LayerOptions& options) {
  check_layer_backward(grad_y, kept, affine, options);
  const at::Tensor& x = *kept.x;
  const int64_t batch = x.size(0), images = images_of(options.scope, batch);
  const int64_t image_channels = options.scope.image_channels, rows = x.size(1) - image_channels;
  at::Tensor grad_x = at::empty_like(x);
  at::Tensor gradients = at::zeros({4, x.size(1)}, x.options().dtype(table_type(x)));
  const LayerOptions batch_options = in_batch(options, false);
  if (image_channels > 0) {
    const auto part = [&](const at::Tensor& t) {
      return as_channels(t.narrow(1, 0, image_channels));
    };
    const auto [of_x, of_affine] = backward_again(
        part(grad_y), part(x), channels_of(affine, 0, image_channels, batch), batch_options);
    at::Tensor out = grad_x.narrow(1, 0, image_channels);
    out.copy_(of_x.view(out.sizes()));
    gradients.narrow(1, 0, image_channels).copy_(of_affine.view({4, batch, -1}).sum(1));
  }
  if (rows == 0) return {grad_x, gradients};
  const at::Tensor grad_others = grad_y.narrow(1, image_channels, rows);
  const at::Tensor others = x.narrow(1, image_channels, rows);
  at::Tensor out = grad_x.narrow(1, image_channels, rows);
  at::Tensor out_affine = gradients.narrow(1, image_channels, rows);
  const LayerAffine own = channels_of(affine, image_channels, rows, 1);
  if (images == 0) {
    const auto [of_x, of_affine] =
        kept.table.size(0) > 0
            ? quantile_layer_backward(grad_others,
                                      {kept.as, others, kept.code, kept.table, kept.stats}, own,
                                      batch_options)
            : backward_again(grad_others, others, own, batch_options);
    out.copy_(of_x), out_affine.copy_(of_affine);
    return {grad_x, gradients};
  }
  for_each_group(x, images, [&](int64_t first, int64_t count) {
    const auto [of_x, of_affine] = backward_again(
        grad_others.narrow(0, first, count), others.narrow(0, first, count), own, batch_options);
    out.narrow(0, first, count).copy_(of_x);
    out_affine.add_(of_affine);
  });
  return {grad_x, gradients};
}

}  // namespace qact::ops
