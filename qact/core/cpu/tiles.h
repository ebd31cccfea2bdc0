// Channels as contiguous strips. A tile is a run of a channel's values in batch-major
// order; a strip is one tile of one channel, in the type that the kernels compute in.
// Where the tensor already lies so, a strip points into it; otherwise it is packed.
//
// Channels that lie innermost (dense layers, channels_last) or have few places per image
// are taken several at a time, so that memory is read in long runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/aligned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/moves.h"
#include "qact/core/mutant.h"
#include "qact/core/view.h"

namespace qact::core::cpu {

struct TilePlan {
  static constexpr int64_t kGroup = 16;        // the most channels taken together
  static constexpr int64_t kRun = 256;         // values that make a long run
  static constexpr int64_t kLongRun = 2048;    // where memory itself is read in every pass
  static constexpr int64_t kValues = 65536;    // the most values of a group's tile
  static constexpr int64_t kCache = 1 << 20;   // bytes that stay near from pass to pass,
  static constexpr int64_t kNear = 1 << 18;    // so near that a copy pays by itself
  static constexpr int64_t kPacked = 1 << 24;  // where each pass would turn the group anew
  static constexpr int64_t kBlocks = 16;       // that threads share, of a lone group

  Shape shape;
  int64_t group;  // channels taken together
  int64_t groups;
  int64_t length;  // the longest tile
  int64_t tiles;
  bool by_image;   // every tile lies within one image
  bool keeps;      // a group is packed once for all passes
  int64_t blocks;  // of consecutive tiles

  // `reread`: whether x is read in more than one pass.
  TilePlan(const Shape& s, const View& x, bool reread = false) : shape(s) {
    const bool innermost =
        x.channel_stride == 1 && s.channels > 1 && (s.spatial == 1 || x.spatial_stride != 1);
    const int64_t bytes = s.context_size() * (x.dtype == DType::f64 ? 8 : 4);
    const bool converted = x.dtype == DType::bf16 || x.dtype == DType::f16;
    by_image = !innermost && s.spatial >= kRun && (!reread || bytes > (converted ? kCache : kNear));
    const int64_t room = innermost ? kPacked : kCache;
    keeps = reread && !by_image && bytes * (innermost ? kGroup : 1) <= room;
    const bool far = reread && !keeps && !by_image;
    const int64_t run = far ? kLongRun : kRun;
    group = innermost ? kGroup : std::clamp<int64_t>(run / s.spatial, 1, kGroup);
    if (keeps) group = std::min(group, room / bytes);
    groups = (s.channels + group - 1) / group;
    if (!innermost) group = (s.channels + groups - 1) / groups;
    group = std::min(group, s.channels);
    const int64_t whole = by_image ? s.spatial : s.context_size();
    length = std::min(whole, std::min(kLongestStrip, kValues / group));
    if (s.spatial < length) length -= length % s.spatial;  // images in one piece
    tiles = ((whole + length - 1) / length) * (by_image ? s.batch : 1);
    static_assert(kPacked <= 4 * kGroup * kBlocks * kLongestStrip);  // what is shared is not kept
    const bool shared = reread && groups == 1 && s.context_size() > kBlocks * kLongestStrip;
    blocks = shared ? kBlocks : 1;
  }

  int64_t first_tile(int64_t block) const { return tiles * block / blocks; }
  int64_t first_channel(int64_t g) const { return g * group; }
  int64_t channels_of(int64_t g) const { return std::min(group, shape.channels - g * group); }

  // A tile's first position, batch * spatial + place, and its length.
  int64_t start(int64_t tile) const {
    if (!by_image) return tile * length;
    const int64_t per_image = (shape.spatial + length - 1) / length;
    return tile / per_image * shape.spatial + tile % per_image * length;
  }
  int64_t size(int64_t tile) const {
    const int64_t at = start(tile);
    const int64_t end = by_image ? (at / shape.spatial + 1) * shape.spatial : shape.context_size();
    return std::min(length, end - at);
  }
};

// The strips of one tensor, in the type that the kernels compute in.
template <class Real>
class Strips {
 public:
  // `keeps`: all tiles of a group, where the plan does.
  Strips(const View& view, const TilePlan& plan, const TensorKernels<Real>& kernels,
         bool keeps = false)
      : view_(view), plan_(plan), kernels_(kernels) {
    same_type_ = view.dtype == (std::is_same_v<Real, double> ? DType::f64 : DType::f32);
    direct_ = same_type_ && plan.by_image && view.spatial_stride == 1;
    held_.resize(keeps && plan.keeps ? plan.tiles : 1, -1);
    if (!direct_ && view) buffer_.resize(held_.size() * plan.group * pitch());
  }

  // The same tensor's, for another thread.
  Strips another() const { return Strips(view_, plan_, kernels_); }

  // The strip of the g-th channel in the group, ready to be read.
  const Real* load(int64_t group, int64_t tile, int64_t g) {
    if (direct_) return at(group, tile);
    const int64_t slot = tile % held_.size(), wanted = group * plan_.tiles + tile;
    Real* strips = buffer_.data() + slot * plan_.group * pitch();
    if (held_[slot] != wanted) {
      move<Way::in>(group, tile, strips);
      held_[slot] = wanted;
    }
    return strips + g * pitch();
  }

  // The strip to write to; store() puts a whole group's strips in place.
  Real* open(int64_t group, int64_t tile, int64_t g) {
    return direct_ ? at(group, tile) : buffer_.data() + g * pitch();
  }
  void store(int64_t group, int64_t tile) {
    if (!direct_) move<Way::out>(group, tile, buffer_.data());
  }

  // From strip to strip, where they are copies.
  int64_t pitch() const { return (plan_.length + 15) / 16 * 16 + 16; }

  // Calls write(to, runs) once for a whole group: `runs` says where its values belong.
  template <class Write>
  void store_runs(int64_t group, int64_t tile, const Write& write) {
    const int64_t channels = plan_.channels_of(group), size = plan_.size(tile);
    if (direct_) {
      write(at(group, tile), RunBlock{1, channels, size, 0, view_.channel_stride, 0});
    } else if (in_runs(tile)) {
      write(at(group, tile), runs(group, tile));
    } else {
      write(buffer_.data(), RunBlock{1, channels, size, 0, pitch(), 0});
      move<Way::out>(group, tile, buffer_.data());
    }
  }

  // A tile of the g-th channel, to be asked for while others are worked on; `tensors` of
  // this size are in use then, and all must fit the cache.
  Ahead ahead(int64_t group, int64_t tile, int64_t g, int64_t tensors) const {
    if (!worth_asking(group, tensors)) return Ahead::nothing(view_.data);
    return Ahead::runs(at(group, tile) + g * view_.channel_stride,
                       std::min(plan_.shape.spatial, plan_.length) * sizeof(Real),
                       view_.batch_stride * sizeof(Real));
  }

 private:
  bool worth_asking(int64_t group, int64_t tensors) const {
    constexpr int64_t kCache = 3 << 19;
    const int64_t bytes = plan_.group * plan_.shape.context_size() * sizeof(Real);
    return view_ && group < plan_.groups && view_.spatial_stride == 1 && same_type_ &&
           tensors * bytes <= kCache;
  }

  // The tensor's element at the start of a tile, in the group's first channel.
  template <class Stored = Real>
  Stored* at(int64_t group, int64_t tile, int64_t further = 0) const {
    const int64_t position = plan_.start(tile) + further, spatial = plan_.shape.spatial;
    return static_cast<Stored*>(view_.data) + position / spatial * view_.batch_stride +
           plan_.first_channel(group) * view_.channel_stride +
           position % spatial * view_.spatial_stride;
  }

  // Whether a tile is whole images, each channel's values in one piece.
  bool in_runs(int64_t tile) const {
    const int64_t spatial = plan_.shape.spatial;
    return same_type_ && spatial > 1 && view_.spatial_stride == 1 &&
           plan_.start(tile) % spatial == 0 && plan_.size(tile) % spatial == 0;
  }
  RunBlock runs(int64_t group, int64_t tile) const {
    const int64_t spatial = plan_.shape.spatial;
    return {plan_.size(tile) / spatial, plan_.channels_of(group), spatial,
            view_.batch_stride,         view_.channel_stride,     pitch()};
  }

  template <Way kWay>
  void move(int64_t group, int64_t tile, Real* strips) {
    if (in_runs(tile)) {
      if constexpr (kWay == Way::in) {
        kernels_.pack(at(group, tile), runs(group, tile), strips);
      } else {
        kernels_.unpack(strips, runs(group, tile), at(group, tile));
      }
    } else if (same_type_) {
      move_each<kWay, Real>(group, tile, strips);
    } else if constexpr (std::is_same_v<Real, float>) {
      if (view_.dtype == DType::bf16) {
        move_each<kWay, bfloat16_bits>(group, tile, strips);
      } else {
        move_each<kWay, half_bits>(group, tile, strips);
      }
    }
  }

  // Any type and any strides.
  template <Way kWay, class Stored>
  void move_each(int64_t group, int64_t tile, Real* to) {
    const int64_t channels = plan_.channels_of(group), size = plan_.size(tile);
    const int64_t spatial = plan_.shape.spatial;
    const int64_t step = spatial == 1 ? view_.batch_stride : view_.spatial_stride;
    const bool even = view_.batch_stride == spatial * step;  // from image to image, too
    for (int64_t i = 0; i < size;) {
      const int64_t place = (plan_.start(tile) + i) % spatial;
      const int64_t run = even ? size - i : std::min(spatial - place, size - i);
      Stored* first = at<Stored>(group, tile, i);
      Real* strips = to + i;
      if (view_.channel_stride == 1 && channels > 1) {
        move_rows<kWay>(Rows<Stored>{first, step, run, channels}, strips, pitch());
      } else {
        for (int64_t g = 0; g < channels; ++g) {
          Stored* channel = first + g * view_.channel_stride;
          Real* strip = strips + g * pitch();
          if (step == 1) {
            move_run<kWay>(channel, strip, run);
          } else {
            for (int64_t r = QACT_MUTANT("strided_first"); r < run; ++r)
              move_value<kWay>(channel[r * step], strip[r]);
          }
        }
      }
      i += run;
    }
  }

  View view_;
  const TilePlan& plan_;
  const TensorKernels<Real>& kernels_;
  bool same_type_ = true;
  bool direct_ = false;
  AlignedVector<Real> buffer_;
  std::vector<int64_t> held_;  // the tiles in the buffer, counted over all groups
};

}  // namespace qact::core::cpu
