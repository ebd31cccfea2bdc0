#include "qact/core/cpu/short_layer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "qact/core/context_ties.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

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
  place_.resize(size);
  buffer_.resize(size);
  Real* at = arrays_.data();
  for (Real** part : {&scratch_.key, &scratch_.z, &scratch_.level})
    *part = std::exchange(at, at + size);
  scratch_.place = place_.data();
  if (!backward) return;
  for (Real** part : {&scratch_.dy, &scratch_.weight, &scratch_.density, &scratch_.waves}) {
    *part = std::exchange(at, at + size);
  }
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
void ShortLayer<Real>::load(const View& from, const Shape& shape, int64_t first, Real* rows) const {
  if (shape.channels - first < kN) std::fill_n(rows, shape.context_size() * kN, Real{0});
  move_rows(from, shape, first, rows, [&](const void* at, Real* to, const RunBlock& runs) {
    kernels_.pack(at, from.dtype, runs, to);
  });
}

template <class Real>
void ShortLayer<Real>::store(const View& to, const Shape& shape, int64_t first) {
  move_rows(to, shape, first, buffer_.data(),
            [&](void* at, const Real* from, const RunBlock& runs) {
              kernels_.unpack(from, runs, to.dtype, at);
            });
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
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first, scratch_.key);
    kernels_.short_forward(static_cast<int32_t>(n), rule_, affines_[first / kN], norm_, scratch_,
                           call.y ? buffer_.data() : nullptr);
    if (call.y) store(call.y, call.shape, first);
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
  const int64_t n = call.shape.context_size();
  for (int64_t first = 0; first < call.shape.channels; first += kN) {
    load(call.x, call.shape, first, scratch_.key);
    load(call.grad_y, call.shape, first, buffer_.data());
    double affines[4 * kN];
    kernels_.short_backward(buffer_.data(), static_cast<int32_t>(n), rule_, affines_[first / kN],
                            norm_, scratch_, affines, buffer_.data());
    store(call.grad_x, call.shape, first);
    const int64_t channels = std::min(kN, call.shape.channels - first);
    std::copy_n(affines, 4 * channels, call.grad_affine + 4 * first);
  }
}

template class ShortLayer<float>;
template class ShortLayer<double>;

}  // namespace qact::core::cpu
