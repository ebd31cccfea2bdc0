// The quantile activation of one layer: its parameters and its entry points.
//
// A neuron's context is a list of values z_1..z_n of one channel: all that it takes over a batch,
// or those of some images (Scope). Append the bounds c and -c. The values >= 0 share a total weight
// of p, the values < 0 a total of 1 - p. With q_j the weighted quantile at tau_j = j / (levels +
// 1),
//
//   activation(x) = #{j : x >= q_j} / levels,
//
// and its derivative is f(x), the weighted context's density, a Gaussian kernel
// estimate. A value's level is the count #{j : x >= q_j}, from 0 to `levels`.
#pragma once

#include <cstdint>

#include "qact/core/view.h"

namespace qact::core {

// exact sorts the context; binned counts it into a histogram. automatic is exact up
// to kExactLimit values per channel and binned above, on every device.
enum class Algorithm { automatic, exact, binned };

inline constexpr int64_t kExactLimit = 256;

// Per channel. Twice a rank, with both bounds below it, is the most that 32 bits must hold.
inline constexpr int64_t kMostValues = (int64_t{1} << 30) - 1;

struct Quantile {
  int levels = 100;             // n_tau
  double bound = 100.0;         // c
  double positive_share = 0.5;  // p
  double bandwidth = 0.5;       // h, the kernel's standard deviation
  Algorithm algorithm = Algorithm::automatic;

  // The paper's backward pass draws this many points of the weighted context and
  // estimates the density from them; 0 uses the whole context. Exact only.
  int64_t density_samples = 0;
  uint64_t seed = 0;

  // false: output the cumulative weight F(x) itself instead of level / levels.
  bool quantised = true;

  QACT_HD bool exact_for(int64_t n) const {
    return algorithm == Algorithm::exact || !quantised || density_samples > 0 ||
           (algorithm == Algorithm::automatic && n <= kExactLimit);
  }
};

// Which values of a channel make up a context. Each context of the fused layer is ranked and normed
// by itself; affine parameters belong to the channel.
struct Scope {
  int64_t image_channels = 0;  // the first so many channels: every image is a context
  int64_t images = 0;          // the others: so many consecutive images are one, the last context
                               // the remainder; 0: the whole batch

  // Of the channels that are not ranked in their image, in such a batch.
  int64_t images_of(int64_t batch) const { return images > 0 && images < batch ? images : batch; }
};

// The plain operator: y = activation(x), and f(x) for the backward pass.
// NaN is in no context and gives NaN; infinities rank as extremes with density 0.
struct ActivationForward {
  Quantile quantile;
  Shape shape;
  View x;
  View y;
  View density;  // optional
};
void activation_forward(const ActivationForward& call, const Execution& execution);

// The fused layer: norm, activation, norm, as torch's BatchNorm would do both norms
// in training. A channel that holds a NaN or an infinity comes out as NaN, and so does one whose
// largest and smallest values are further apart than its type can tell (float32, and what is
// computed in it: 3.4e38), or whose variance is beyond double (float64: deviations of 1e154). On
// CUDA, gradients need deviations below 1e18.
//
// What the backward pass needs is kept in `code` and `table`: codes and tables (codes.h) of
// contexts that are long enough for them; the others are computed again from x. kept_contexts
// (contexts.h) says how much room both take. Codes lie in the device's own order: on CUDA, in that
// of y.
//
// `rows` below are the channels that are not ranked in their image. Where scope.images is given,
// stats are the means of both norms' statistics over the contexts, weighted by their images, and
// the context is the sum of all.
struct LayerForward {
  Quantile quantile;
  double eps = 1e-5;
  Scope scope;
  Shape shape;
  View x;
  View y;  // optional: none where only what is kept is wanted
  ChannelVector weight_in, bias_in, weight_out, bias_out;
  uint8_t* code = nullptr;     // on CUDA optional, as table is
  int32_t* table = nullptr;    // optional: for the backward pass
  double* stats = nullptr;     // [rows][kLayerStats]
  int64_t* context = nullptr;  // [rows][kContextBins], the batch's own; optional
};
void layer_forward(const LayerForward& call, const Execution& execution);

// What the forward pass leaves per channel. Variances are biased; the outer norm's are those of the
// activation, level / levels.
//
// The plain operator on CUDA keeps the density f by value: its node for x is
// (x - mean_in) * density_scale + density_offset, kept within [0, density_last], and its values
// come in density_unit.
struct LayerStats {
  double mean_in, var_in, mean_out, var_out;
  double density_scale, density_offset, density_last, density_unit;
};
inline constexpr int kLayerStats = sizeof(LayerStats) / sizeof(double);

struct LayerBackward {
  Quantile quantile;
  double eps = 1e-5;
  Scope scope;
  Shape shape;
  View grad_y;
  View x;  // needed where a context was not kept
  ChannelVector weight_in, bias_in, weight_out;
  const uint8_t* code = nullptr;
  const int32_t* table = nullptr;  // on CUDA none: contexts were not kept
  View grad_x;
  double* grad_affine = nullptr;  // [channels][4]: weight_in, bias_in, weight_out, bias_out
};
void layer_backward(const LayerBackward& call, const Execution& execution);

// Values from outside the context: z = scale * x + shift, its level the number of
// quantiles q_j <= z, and y = out_scale * level / levels + out_shift, per channel. The
// quantiles come from weighted_quantiles (exact.h) or context_quantiles (context.h).
struct QuantileApply {
  int levels = 100;
  bool quantised = true;  // false: the level as a fraction between its two quantiles
  Shape shape;
  View x;
  View y;
  ChannelVector scale, shift, out_scale, out_shift;
  const double* quantiles = nullptr;  // [channels][levels], ascending
};
void quantile_apply(const QuantileApply& call, const Execution& execution);

// The density at a level's middle is that of the quantiles as equally heavy points.
struct QuantileApplyBackward {
  int levels = 100;
  double bandwidth = 0.5;
  Shape shape;
  View grad_y;
  View x;
  View grad_x;
  ChannelVector scale, shift, out_scale;
  const double* quantiles = nullptr;
  double* grad_affine = nullptr;  // [channels][4]: scale, shift, out_scale, out_shift
};
void quantile_apply_backward(const QuantileApplyBackward& call, const Execution& execution);

// q_1..q_levels of each channel of x, exactly: [channels][levels].
struct Quantiles {
  Quantile quantile;
  Shape shape;
  View x;
  double* quantiles = nullptr;
};
void quantiles(const Quantiles& call, const Execution& execution);

// Counts z = scale * x + shift into contexts, [channels][kContextBins].
struct ContextBuild {
  Shape shape;
  View x;
  ChannelVector scale, shift;
  int64_t* context = nullptr;
};
void context_build(const ContextBuild& call, const Execution& execution);

// context_blend (context.h) of every channel of a and b; `blended` may be one of the two.
struct ContextBlend {
  int64_t channels = 0;
  const int64_t* a = nullptr;
  double a_values = 0;
  const int64_t* b = nullptr;
  double b_values = 0;
  int64_t* blended = nullptr;
};
void context_blend(const ContextBlend& call, const Execution& execution);

// A running statistic per channel, updated in place.
struct RunningVector {
  void* data = nullptr;
  DType dtype = DType::f32;
};

// What a layer remembers of a batch. Running statistics move by `momentum` towards the batch's, the
// variances towards its unbiased ones; so does the running context, whose effective sample count is
// `values` after that; and `batches` counts one more.
struct LayerTrack {
  int64_t channels = 0;
  const double* stats = nullptr;   // [channels][kLayerStats], as layer_forward leaves them
  const int64_t* batch = nullptr;  // [channels][kContextBins], the batch's context
  RunningVector mean_in, var_in, mean_out, var_out;
  int64_t* context = nullptr;  // [channels][kContextBins], the running context
  int64_t* batches = nullptr;
  double n = 0;  // values per channel in the batch, more than 1
  double momentum = 0.1;
  double values = 0;
};
void layer_track(const LayerTrack& call, const Execution& execution);

}  // namespace qact::core
