#include "qact/core/cpu/short_layer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "qact/core/context_ties.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

template <class Real>
constexpr DType kDType = sizeof(Real) == 8 ? DType::f64 : DType::f32;

// Of a channel's values in strips, one image after the other.
int64_t pitch_of(const Shape& shape) { return (shape.context_size() + 15) / 16 * 16 + 16; }

}  // namespace

template <class Real>
template <class Call>
void ShortLayer<Real>::start(const Call& call, bool backward) {
  const Quantile& q = call.quantile;
  set_affines(call);
  rule_ = {q.levels, q.bound, q.positive_share, q.bandwidth, call.eps};
  // As many rows as the sort has. Arrays begin at different places of a page, so that the same row
  // of all of them fits the cache.
  const int64_t rows =
      std::max<int64_t>(8, std::bit_ceil(static_cast<uint64_t>(call.shape.context_size())));
  const int64_t size = rows * kN + kN;
  arrays_.resize((backward ? 10 : 3) * size);
  places_of_rows_.resize(size);
  Real* at = arrays_.data();
  for (Real** part : {&scratch_.key, &scratch_.z, &scratch_.level})
    *part = std::exchange(at, at + size);
  scratch_.place = places_of_rows_.data();
  if (!backward) return;
  for (Real** part : {&scratch_.dy, &scratch_.weight, &scratch_.density, &scratch_.waves}) {
    *part = std::exchange(at, at + size);
  }
}

template <class Real>
void ShortLayer<Real>::place_values(const View& view, const Shape& shape) {
  const int64_t n = shape.context_size();
  rows_at_once_ = view.channel_stride == 1;
  const int64_t value = rows_at_once_ ? kN : 1, lane = rows_at_once_ ? 1 : pitch_of(shape);
  offsets_.resize(n);
  for (int64_t i = 0; i < n; ++i) offsets_[i] = static_cast<int32_t>(i * value);
  places_ = {offsets_.data(), static_cast<int32_t>(lane), 0};
  buffer_.resize(kN * pitch_of(shape));
}

template <class Real>
RunBlock ShortLayer<Real>::strips_of(const View& view, const Shape& shape, int64_t first) const {
  return {shape.batch,         std::min(kN, shape.channels - first),
          shape.spatial,       view.batch_stride,
          view.channel_stride, view.spatial_stride,
          pitch_of(shape)};
}

// A row is to pack() what a strip is elsewhere, of the channels' values at one place.
template <class Real>
template <class Move>
void ShortLayer<Real>::move_rows(const View& view, const Shape& shape, int64_t first, Real* rows,
                                 const Move& move) const {
  const int64_t channels = std::min(kN, shape.channels - first);
  if (shape.spatial == 1) {
    const RunBlock runs{1, shape.batch, channels, 0, view.batch_stride, view.channel_stride, kN};
    return move(view.from(0, first).data, rows, runs);
  }
  const RunBlock runs{1, shape.spatial, channels, 0, view.spatial_stride, view.channel_stride, kN};
  for (int64_t image = 0; image < shape.batch; ++image) {
    move(view.from(image, first).data, rows + image * shape.spatial * kN, runs);
  }
}

// Lanes beyond the last channel are 0.
template <class Real>
void ShortLayer<Real>::load(const View& x, const Shape& shape, int64_t first) {
  places_.lanes = static_cast<int32_t>(std::min(kN, shape.channels - first));
  if (places_.lanes < kN) std::fill_n(scratch_.key, shape.context_size() * kN, Real{0});
  move_rows(x, shape, first, scratch_.key, [&](const void* from, Real* to, const RunBlock& runs) {
    kernels_.pack(from, x.dtype, runs, to);
  });
}

template <class Real>
void ShortLayer<Real>::fill_buffer(const View& from, const Shape& shape, int64_t first) {
  const auto pack = [&](const void* at, Real* to, const RunBlock& runs) {
    kernels_.pack(at, from.dtype, runs, to);
  };
  if (rows_at_once_) return move_rows(from, shape, first, buffer_.data(), pack);
  pack(from.from(0, first).data, buffer_.data(), strips_of(from, shape, first));
}

template <class Real>
void ShortLayer<Real>::empty_buffer(const Shape& shape, int64_t first, const View& to) {
  const auto unpack = [&](void* at, const Real* from, const RunBlock& runs) {
    kernels_.unpack(from, runs, to.dtype, at);
  };
  if (rows_at_once_) return move_rows(to, shape, first, buffer_.data(), unpack);
  unpack(to.from(0, first).data, buffer_.data(), strips_of(to, shape, first));
}

template <class Real>
template <class Call>
void ShortLayer<Real>::set_affines(const Call& call) {
  const int64_t channels = call.shape.channels;
  for (int64_t first = kN * static_cast<int64_t>(affines_.size()); first < channels; first += kN) {
    ShortAffine<Real>& out = affines_.emplace_back();
    for (int64_t l = 0; l < kN; ++l) {
      const int64_t c = std::min(first + l, channels - 1);
      out.weight_in[l] = call.weight_in.at(c, 1.0);
      out.bias_in[l] = call.bias_in.at(c, 0.0);
      out.weight_out[l] = call.weight_out.at(c, 1.0);
      if constexpr (std::is_same_v<Call, LayerForward>) out.bias_out[l] = call.bias_out.at(c, 0.0);
    }
  }
}

template <class Real>
void ShortLayer<Real>::forward(const LayerForward& call) {
  start(call, /*backward=*/false);
  place_values(call.y, call.shape);
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first);
    kernels_.short_forward(static_cast<int32_t>(n), places_, rule_, affines_[first / kN], norm_,
                           scratch_, call.y ? buffer_.data() : nullptr);
    if (call.y) empty_buffer(call.shape, first, call.y);
    for (int64_t l = 0; l < std::min(kN, call.shape.channels - first); ++l) {
      const LayerStats stats{
          norm_.mean_in[l], norm_.var_in[l], norm_.mean_out[l], norm_.var_out[l], 0, 0, 0, 0};
      if (call.stats) std::memcpy(call.stats + (first + l) * kLayerStats, &stats, sizeof(stats));
      if (!call.context) continue;
      context_.clear();
      for (int64_t i = QACT_MUTANT("short_context_first"); i < n && norm_.none[l] == 0; ++i) {
        context_.push_back(scratch_.z[i * kN + l]);
      }
      count_context(context_, sort_scratch_, call.context + (first + l) * kContextBins);
    }
  }
}

template <class Real>
void ShortLayer<Real>::backward(const LayerBackward& call) {
  start(call, /*backward=*/true);
  place_values(call.grad_x, call.shape);
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first);
    fill_buffer(call.grad_y, call.shape, first);
    double affines[4 * kN];
    kernels_.short_backward(buffer_.data(), static_cast<int32_t>(n), places_, rule_,
                            affines_[first / kN], norm_, scratch_, affines, buffer_.data());
    empty_buffer(call.shape, first, call.grad_x);
    const int64_t channels = std::min(kN, call.shape.channels - first);
    std::copy_n(affines, 4 * channels, call.grad_affine + 4 * first);
  }
}

template class ShortLayer<float>;
template class ShortLayer<double>;

}  // namespace qact::core::cpu
