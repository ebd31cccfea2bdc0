#include "qact/core/cpu/short_layer.h"

#include <algorithm>
#include <cstring>

#include "qact/core/context_ties.h"
#include "qact/core/cpu/density_grid.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

template <class Real>
constexpr DType kDType = sizeof(Real) == 8 ? DType::f64 : DType::f32;

// A channel's values, one image after the other.
int64_t pitch_of(const Shape& shape) { return (shape.context_size() + 15) / 16 * 16 + 16; }

}  // namespace

template <class Real>
template <class Call>
void ShortLayer<Real>::start(const Call& call) {
  static_assert(ShortRule::kReach == DensityGrid::kReach &&
                ShortRule::kPerBandwidth == DensityGrid::kPerBandwidth);
  const Quantile& q = call.quantile;
  rule_ = {q.levels, q.bound, q.positive_share, q.bandwidth, call.eps, {}};
  std::copy(DensityGrid::taps().begin(), DensityGrid::taps().end(), rule_.taps);
  strips_.resize(kN * pitch_of(call.shape));
  for (auto* rows : {&x_, &z_, &y_, &dy_}) rows->resize(kN * call.shape.context_size());
}

template <class Real>
template <class Call>
ShortAffine<Real> ShortLayer<Real>::affine(const Call& call, int64_t first) const {
  ShortAffine<Real> out;
  for (int64_t l = 0; l < kN; ++l) {
    const int64_t c = std::min(first + l, call.shape.channels - 1);
    out.weight_in[l] = call.weight_in.at(c, 1.0);
    out.bias_in[l] = call.bias_in.at(c, 0.0);
    out.weight_out[l] = call.weight_out.at(c, 1.0);
    if constexpr (std::is_same_v<Call, LayerForward>) out.bias_out[l] = call.bias_out.at(c, 0.0);
  }
  return out;
}

// By way of strips; lanes beyond the last channel are given its values.
template <class Real>
void ShortLayer<Real>::load(const View& view, const Shape& shape, int64_t first,
                            AlignedVector<Real>& rows) {
  const int64_t pitch = pitch_of(shape), channels = std::min(kN, shape.channels - first);
  const int64_t n = shape.context_size();
  kernels_.pack(view.from(0, first).data, view.dtype,
                {shape.batch, channels, shape.spatial, view.batch_stride, view.channel_stride,
                 view.spatial_stride, pitch},
                strips_.data());
  for (int64_t l = channels; l < kN; ++l) {
    std::memcpy(strips_.data() + l * pitch, strips_.data() + (channels - 1) * pitch,
                n * sizeof(Real));
  }
  kernels_.unpack(strips_.data(), {1, kN, n, 0, 1, kN, pitch}, kDType<Real>, rows.data());
}

template <class Real>
void ShortLayer<Real>::store(const AlignedVector<Real>& rows, const Shape& shape, int64_t first,
                             const View& view) {
  const int64_t pitch = pitch_of(shape);
  kernels_.pack(rows.data(), kDType<Real>, {1, kN, shape.context_size(), 0, 1, kN, pitch},
                strips_.data());
  kernels_.unpack(strips_.data(),
                  {shape.batch, std::min(kN, shape.channels - first), shape.spatial,
                   view.batch_stride, view.channel_stride, view.spatial_stride, pitch},
                  view.dtype, view.from(0, first).data);
}

template <class Real>
void ShortLayer<Real>::forward(const LayerForward& call) {
  start(call);
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first, x_);
    kernels_.short_forward(x_.data(), static_cast<int32_t>(n), rule_, affine(call, first), norm_,
                           z_.data(), y_.data());
    if (call.y) store(y_, call.shape, first, call.y);
    for (int64_t l = 0; l < std::min(kN, call.shape.channels - first); ++l) {
      const LayerStats stats{
          norm_.mean_in[l], norm_.var_in[l], norm_.mean_out[l], norm_.var_out[l], 0, 0, 0, 0};
      if (call.stats) std::memcpy(call.stats + (first + l) * kLayerStats, &stats, sizeof(stats));
      if (!call.context) continue;
      context_.clear();
      for (int64_t i = QACT_MUTANT("short_context_first"); i < n && norm_.finite[l]; ++i) {
        context_.push_back(z_[i * kN + l]);
      }
      count_context(context_, scratch_, call.context + (first + l) * kContextBins);
    }
  }
}

template <class Real>
void ShortLayer<Real>::backward(const LayerBackward& call) {
  start(call);
  room_.resize(1);
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first, x_);
    load(call.grad_y, call.shape, first, dy_);
    double affines[4 * kN];
    kernels_.short_backward(x_.data(), dy_.data(), static_cast<int32_t>(n), rule_,
                            affine(call, first), norm_, room_[0], affines, y_.data());
    store(y_, call.shape, first, call.grad_x);
    const int64_t channels = std::min(kN, call.shape.channels - first);
    std::copy_n(affines, 4 * channels, call.grad_affine + 4 * first);
  }
}

template class ShortLayer<float>;
template class ShortLayer<double>;

}  // namespace qact::core::cpu
