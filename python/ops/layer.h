// The fused layer's operators on any device: their arguments, their checks, and what the forward
// pass keeps for the backward pass.
#pragma once

#include <tuple>

#include "python/ops/tensors.h"
#include "qact/core/contexts.h"

namespace qact::python {

// The numbers of the schemas.
struct LayerSettings {
  double eps;
  int64_t levels;
  double bound, positive_share, bandwidth;
  int64_t algorithm, image_channels, context_images;

  core::Scope scope() const { return {image_channels, context_images}; }
};

struct LayerVectors {
  const MaybeTensor &weight_in, &bias_in, &weight_out, &bias_out;
};

// Their numbers, held while core runs.
struct LayerOperands {
  FlatVector weight_in, bias_in, weight_out, bias_out;

  explicit LayerOperands(const LayerVectors& vectors)
      : weight_in(flatten_vector(vectors.weight_in)),
        bias_in(flatten_vector(vectors.bias_in)),
        weight_out(flatten_vector(vectors.weight_out)),
        bias_out(flatten_vector(vectors.bias_out)) {}

  void fill(core::LayerForward& call) const {
    fill_both(call);
    call.bias_out = bias_out.vector;
  }
  void fill(core::LayerBackward& call) const { fill_both(call); }

 private:
  template <class Call>
  void fill_both(Call& call) const {
    call.weight_in = weight_in.vector;
    call.bias_in = bias_in.vector;
    call.weight_out = weight_out.vector;
  }
};

// What the backward pass must be handed.
struct Wanted {
  int64_t kept_bytes;
  bool x;
};

// What the backward pass is handed beside the statistics: one tensor of bytes, of which
// nobody else knows more than its length. It has the tables of all contexts that are kept, then
// their codes (core/contexts.h). The fake kernels have the length by the same rule, in Python.
// Where it is longer than a byte a value, all contexts are kept, and x is not needed.
struct Kept {
  core::KeptContexts<int64_t> contexts;
  int64_t codes;

  Kept(const Tensor& x, const core::Scope& scope)
      : contexts(core::kept_contexts<int64_t>(scope, x.size(0), x.size(1),
                                              values_per_channel(x) / x.size(0),
                                              static_cast<int64_t>(x.element_size()))),
        codes(contexts.code_channels * values_per_channel(x)) {}

  int64_t table_bytes() const {
    return contexts.tables * static_cast<int64_t>(sizeof(core::CodeTable));
  }
  int64_t bytes() const { return table_bytes() + codes; }
  Wanted wanted() const { return {bytes(), contexts.x}; }

  template <class Call, class Byte>  // either direction
  void fill(Call& call, Byte* bytes) const {
    if (contexts.tables > 0) call.table = reinterpret_cast<decltype(call.table)>(bytes);
    call.code = bytes + table_bytes();
  }
};

core::Quantile check_layer(const Tensor& x, const LayerVectors& vectors,
                           const LayerSettings& settings);
core::Quantile check_layer_backward(const Tensor& grad_y, const LayerVectors& vectors,
                                    const LayerSettings& settings);
// After that: what the forward pass left.
void check_kept(const Tensor& grad_y, const MaybeTensor& x, const Tensor& kept, const Tensor& stats,
                const LayerSettings& settings, const Wanted& wanted);

// What a layer remembers of a batch: the arguments of layer_track.
struct TrackArguments {
  const Tensor &mean_in, &var_in, &mean_out, &var_out, &context, &batches, &stats, &batch;
  std::optional<double> momentum;  // none: a cumulative average
  int64_t n;                       // values per channel in the batch
  int64_t context_images, images;  // in a context, in the batch
};
void check_track(const TrackArguments& arguments);
// All but momentum, which a device may have to read from its own memory.
core::LayerTrack track_call(const TrackArguments& arguments);

}  // namespace qact::python
