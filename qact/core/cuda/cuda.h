// The entry points of core on CUDA: those of quantile.h, on the caller's stream and device.
// Nothing is allocated, copied to the host or waited for: scratch memory comes from the
// caller, who asks how much is needed.
#pragma once

#include <cstddef>

#include "qact/core/quantile.h"

namespace qact::core::cuda {

// Whether a layout can be read as it is: NCHW or channels_last, with any outer strides.
bool reads(const Shape& shape, const View& view);
// Whether both lie in the same order, so that one kernel can walk over them.
bool alike(const Shape& shape, const View& a, const View& b);

struct Stream {
  void* handle = nullptr;   // cudaStream_t
  void* scratch = nullptr;  // as many bytes as asked for, aligned to 16
};

// The codes lie in the order of y. `levels` is at most 255.
size_t layer_forward_scratch(const LayerForward& call);
void layer_forward(const LayerForward& call, const Stream& stream);

// The affine gradients go to grad_affine, [4][channels], not to the call's own.
size_t layer_backward_scratch(const LayerBackward& call);
void layer_backward(const LayerBackward& call, float* grad_affine, const Stream& stream);

// Quantised, without samples, at most 255 levels.
size_t activation_forward_scratch(const ActivationForward& call);
void activation_forward(const ActivationForward& call, const Stream& stream);

void quantile_apply(const QuantileApply& call, const Stream& stream);
size_t quantile_apply_backward_scratch(const QuantileApplyBackward& call);
void quantile_apply_backward(const QuantileApplyBackward& call, float* grad_affine,
                             const Stream& stream);

void context_build(const ContextBuild& call, const Stream& stream);
// `blended` is neither a nor b.
void context_blend(const ContextBlend& call, const Stream& stream);
void context_quantiles(const int64_t* contexts, int64_t channels, const Quantile& quantile,
                       double* quantiles, const Stream& stream);

// The running statistics are float32.
void layer_track(const LayerTrack& call, const Stream& stream);

}  // namespace qact::core::cuda
