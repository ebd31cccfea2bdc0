// The fused layer in any scope, by a device's kernels for contexts of the whole batch: an image's
// contexts are copied into channels of their own, and some images are a call of their own. For
// devices whose kernels know no other scope.
#pragma once

#include <tuple>

#include "qact/ops/quantile_layer_impl.h"

namespace qact::ops {

LayerResult forward_by_reshaping(const at::Tensor& x, const LayerAffine& affine,
                                 const LayerOptions& options, Keep keep);

std::tuple<at::Tensor, at::Tensor> backward_by_reshaping(const at::Tensor& grad_y,
                                                         const LayerKept& kept,
                                                         const LayerAffine& affine,
                                                         const LayerOptions& options);

}  // namespace qact::ops
