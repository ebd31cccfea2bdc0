// How the drivers walk through a tensor. A tile is a run of a channel's values in batch-major
// order. Channels that lie innermost (dense layers, channels-last) or have few places per image are
// taken several at a time, so that memory is read in long runs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qact/core/cpu/kernels.h"
#include "qact/core/view.h"

namespace qact::core::cpu {

enum class TileStrategy {
  in_place,  // one channel at a time, image by image, as it lies in the tensor
  packed,    // a group of channels is copied into strips once, for all passes
  repacked,  // every pass copies its tiles anew
};

struct TilePlan {
  static constexpr int64_t kGroup = 16;        // channels that make a long run of neighbours,
  static constexpr int64_t kWideGroup = 32;    // and the most that are taken together
  static constexpr int64_t kLeastGroups = 8;   // for threads to share
  static constexpr int64_t kRun = 256;         // values that make a long run
  static constexpr int64_t kLongRun = 2048;    // where memory itself is read in every pass
  static constexpr int64_t kValues = 65536;    // the most values of a group's tile
  static constexpr int64_t kCache = 1 << 20;   // bytes that stay near from pass to pass
  static constexpr int64_t kPacked = 1 << 24;  // where each pass would transpose the group anew
  static constexpr int64_t kBlocks = 16;       // that threads share, of a lone group

  Shape shape;
  TileStrategy strategy;
  int64_t group;  // channels taken together
  int64_t groups;
  int64_t length;  // the longest tile
  int64_t tiles;
  int64_t blocks;  // of consecutive tiles

  // `reread`: whether x is read in more than one pass.
  TilePlan(const Shape& s, const View& x, bool reread = false)
      : shape(s), strategy(choose(s, x, reread)) {
    group = std::max<int64_t>(1, std::min(group_of(x, reread), s.channels));
    groups = (s.channels + group - 1) / group;
    if (!innermost(s, x)) group = (s.channels + groups - 1) / groups;
    const int64_t whole = in_place() ? s.spatial : s.context_size();
    length = std::min(whole, std::min(kLongestStrip, kValues / group));
    if (s.spatial < length) length -= length % s.spatial;  // images in one piece
    tiles = ((whole + length - 1) / length) * (in_place() ? s.batch : 1);
    static_assert(kPacked <= 4 * kGroup * kBlocks * kLongestStrip);  // what is shared is not packed
    const bool shared = reread && groups == 1 && s.context_size() > kBlocks * kLongestStrip;
    blocks = shared ? kBlocks : 1;
  }

  // Long images need no copy, unless a channel is so short that its copy stays near from pass to
  // pass. Neighbouring channels are transposed, which costs more than reading a copy from memory.
  static TileStrategy choose(const Shape& s, const View& x, bool reread) {
    const int64_t bytes = bytes_of(s, x);
    const bool fits = innermost(s, x) ? bytes * kGroup <= kPacked : bytes <= kCache;
    if (reread && fits) return TileStrategy::packed;
    return !innermost(s, x) && s.spatial >= kRun ? TileStrategy::in_place : TileStrategy::repacked;
  }

  bool in_place() const { return strategy == TileStrategy::in_place; }
  bool packs_once() const { return strategy == TileStrategy::packed; }

  int64_t first_tile(int64_t block) const { return tiles * block / blocks; }
  int64_t first_channel(int64_t g) const { return g * group; }
  int64_t channels_of(int64_t g) const { return std::min(group, shape.channels - g * group); }

  // A tile's first position, batch * spatial + place, and its length.
  int64_t start(int64_t tile) const {
    if (!in_place()) return tile * length;
    const int64_t per_image = (shape.spatial + length - 1) / length;
    return tile / per_image * shape.spatial + tile % per_image * length;
  }
  int64_t size(int64_t tile) const {
    const int64_t at = start(tile);
    const int64_t end =
        in_place() ? (at / shape.spatial + 1) * shape.spatial : shape.context_size();
    return std::min(length, end - at);
  }

 private:
  static bool innermost(const Shape& s, const View& x) {
    return x.channel_stride == 1 && s.channels > 1 && (s.spatial == 1 || x.spatial_stride != 1);
  }
  // Of a channel's strips.
  static int64_t bytes_of(const Shape& s, const View& x) {
    return s.context_size() * (x.dtype == DType::f64 ? 8 : 4);
  }

  int64_t group_of(const View& x, bool reread) const {
    const int64_t bytes = std::max<int64_t>(bytes_of(shape, x), 1);
    if (innermost(shape, x)) {
      if (!packs_once()) return kGroup;
      // Rows of 32 channels are two neighbouring lines: (128,512,4,4) in float32 takes 4.05 ns a
      // value with them, 4.27 with 16 and 4.23 with 64.
      const int64_t most = std::min(kWideGroup, shape.channels / kLeastGroups);
      return std::clamp(kCache / 2 / bytes, kGroup, std::max(kGroup, most));
    }
    const int64_t run = reread && strategy == TileStrategy::repacked ? kLongRun : kRun;
    const int64_t group = std::clamp<int64_t>(run / shape.spatial, 1, kGroup);
    return packs_once() ? std::min(group, kCache / bytes) : group;
  }
};

}  // namespace qact::core::cpu
