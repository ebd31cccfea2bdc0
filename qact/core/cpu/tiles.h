// Channels as contiguous strips: a strip is one tile of one channel (tile_plan.h), in the type that
// the kernels compute in. Where the tensor already lies so, a strip points into it; otherwise it is
// packed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/aligned.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/tile_plan.h"
#include "qact/core/mutant.h"
#include "qact/core/view.h"

namespace qact::core::cpu {

// The strips of one tensor, in the type that the kernels compute in.
template <class Real>
class Strips {
 public:
  // `keeps`: all tiles of a group, where the plan does.
  Strips(const View& view, const TilePlan& plan, const TensorKernels<Real>& kernels,
         bool keeps = false)
      : view_(view), plan_(plan), kernels_(kernels) {
    direct_ = view.dtype == kDType && plan.in_place() && view.spatial_stride == 1;
    held_.resize(keeps && plan.packs_once() ? plan.tiles : 1, -1);
    if (!direct_ && view) buffer_.resize(held_.size() * plan.group * pitch());
  }

  // The same tensor's, for another thread.
  Strips another() const { return Strips(view_, plan_, kernels_); }

  // The strip of the g-th channel in the group, ready to be read.
  const Real* load(int64_t group, int64_t tile, int64_t g) {
    if (direct_) return static_cast<const Real*>(at(group, tile));
    const int64_t slot = tile % held_.size(), wanted = group * plan_.tiles + tile;
    Real* strips = buffer_.data() + slot * plan_.group * pitch();
    if (held_[slot] != wanted) {
      for_each_block(group, tile, [&](const void* from, const RunBlock& runs, int64_t i) {
        kernels_.pack(from, view_.dtype, runs, strips + i);
      });
      held_[slot] = wanted;
    }
    return strips + g * pitch();
  }

  // The strip to write to; store() puts a whole group's strips in place.
  Real* open(int64_t group, int64_t tile, int64_t g) {
    return direct_ ? static_cast<Real*>(at(group, tile)) : buffer_.data() + g * pitch();
  }
  void store(int64_t group, int64_t tile) {
    if (direct_) return;
    for_each_block(group, tile, [&](void* to, const RunBlock& runs, int64_t i) {
      kernels_.unpack(buffer_.data() + i, runs, view_.dtype, to);
    });
  }

  // From strip to strip, where they are copies.
  int64_t pitch() const { return (plan_.length + 15) / 16 * 16 + 16; }

  // Calls write(to, runs) once for a whole group: `runs` says where its values belong, of type
  // written().
  template <class Write>
  void store_runs(int64_t group, int64_t tile, const Write& write) {
    const int64_t channels = plan_.channels_of(group), size = plan_.size(tile);
    if (in_place()) {
      const int64_t run = plan_.in_place() ? size : plan_.shape.spatial;
      return write(at(group, tile), block(group, size / run, run, 1));
    }
    write(static_cast<void*>(buffer_.data()), RunBlock{1, channels, size, 0, pitch(), 1, 0});
    store(group, tile);
  }
  DType written() const { return in_place() ? view_.dtype : kDType; }

  // A tile of the g-th channel, to be prefetched while others are worked on: the group's part of
  // this tensor and two like it must fit the cache.
  Prefetch prefetch(int64_t group, int64_t tile, int64_t g) const {
    constexpr int64_t kCache = 1 << 19;
    const bool fits = plan_.group * plan_.shape.context_size() * sizeof(Real) <= kCache;
    if (!view_ || group >= plan_.groups || view_.spatial_stride != 1 || !fits) {
      return Prefetch::nothing(this);
    }
    const int64_t bytes = size_of(view_.dtype), run = std::min(plan_.shape.spatial, plan_.length);
    return Prefetch::of_runs(
        static_cast<const char*>(at(group, tile)) + bytes * g * view_.channel_stride, bytes * run,
        bytes * view_.batch_stride, plan_.size(tile) / run);
  }

 private:
  // Whether every tile is runs of side-by-side values in the tensor.
  bool in_place() const {
    const int64_t spatial = plan_.shape.spatial;
    return view_.spatial_stride == 1 && spatial > 1 &&
           (plan_.in_place() || plan_.length % spatial == 0);
  }

  // The tensor's element that lies so far into a tile, in the group's first channel.
  void* at(int64_t group, int64_t tile, int64_t further = 0) const {
    const int64_t position = plan_.start(tile) + further, spatial = plan_.shape.spatial;
    return view_.from(position / spatial, plan_.first_channel(group)).data_at(position % spatial);
  }

  RunBlock block(int64_t group, int64_t images, int64_t size, int64_t step) const {
    return {images, plan_.channels_of(group), size, view_.batch_stride, view_.channel_stride, step,
            pitch()};
  }

  // visit(tensor, runs, place in the strips) for the blocks that make up a tile: one, unless it
  // starts or ends within an image.
  template <class Visit>
  void for_each_block(int64_t group, int64_t tile, const Visit& visit) {
    const int64_t spatial = plan_.shape.spatial, size = plan_.size(tile);
    const int64_t step = spatial == 1 ? view_.batch_stride : view_.spatial_stride;
    if (view_.batch_stride == spatial * step) {  // evenly from image to image, too
      return visit(at(group, tile), block(group, 1, size, step), 0);
    }
    for (int64_t i = 0; i < size;) {
      const int64_t place = (plan_.start(tile) + i) % spatial;
      const int64_t images = place == 0 ? (size - i) / spatial : 0;
      const int64_t run = images > 0 ? spatial : std::min(spatial - place, size - i);
      visit(at(group, tile, QACT_MUTANT("tile_block_first") ? 0 : i),
            block(group, std::max<int64_t>(images, 1), run, step), i);
      i += std::max<int64_t>(images, 1) * run;
    }
  }

  static constexpr DType kDType = std::is_same_v<Real, double> ? DType::f64 : DType::f32;

  View view_;
  const TilePlan& plan_;
  const TensorKernels<Real>& kernels_;
  bool direct_ = false;
  AlignedVector<Real> buffer_;
  std::vector<int64_t> held_;  // the tiles in the buffer, counted over all groups
};

}  // namespace qact::core::cpu
