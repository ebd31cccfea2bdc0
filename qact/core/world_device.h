// The layer over several ranks where this rank's values lie on a device: what the device counts and
// writes. All that follows from the reduced numbers is worked out by the host's code, the same as
// for values of its own (cpu/world_rounds.h), so that codes and tables are the CPU's, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "qact/core/bin_plan.h"
#include "qact/core/quantile.h"
#include "qact/core/world.h"

namespace qact::core {

// A bin that does not tell its values' levels: intervals begin..end of all do, by the key of t
// (cpu/level_search.h).
struct WorldHeavyBin {
  int32_t bin;
  int32_t begin, end;
  int32_t level;  // that of its code, and of values in no interval
};
struct WorldInterval {
  uint32_t begin, end;  // keys
  int32_t first;        // while levels are searched: of its counters among all,
  int32_t shift;        // each of which counts 2^shift keys
  int32_t level;        // afterwards
};

// How one channel's values are told apart.
struct WorldBins {
  enum Kind : int32_t { binned, gathered, not_finite };
  BinMap<float> map;
  Kind kind;
  int32_t first;                   // of its bins among all channels'
  int32_t heavy_begin, heavy_end;  // of its heavy bins, which ascend
};

struct WorldTables {
  std::span<const WorldBins> channels;
  std::span<const WorldHeavyBin> heavy;
  std::span<const WorldInterval> intervals;
  std::span<const uint8_t> codes;  // by bin
  std::span<const float> outputs;  // [channels][2]: y = level * scale + shift
  std::span<const int32_t> table;  // of all channels: the level of each code
};

class WorldDevice {
 public:
  virtual ~WorldDevice() = default;

  // This rank's own numbers, on the device; they stay until the next ones are asked for.
  virtual Round summary(const Rank& rank) = 0;
  // `packed`: two counts to a word.
  virtual Round bins(std::span<const WorldBins> channels, int64_t bins, bool packed) = 0;
  virtual Round search(std::span<const WorldBins> channels, std::span<const WorldHeavyBin> heavy,
                       std::span<const WorldInterval> intervals, int64_t counters, bool packed) = 0;
  // The values of these channels as bits, n in all of each, of which this rank's begin at `first`.
  virtual Round gather(std::span<const int64_t> channels, int64_t n, int64_t first) = 0;

  virtual void to_host(void* to, const void* from, size_t bytes) = 0;
  virtual void to_device(void* to, const void* from, size_t bytes) = 0;
  // The codes of channels that are not gathered, and y of all.
  virtual void write(const WorldTables& tables) = 0;
};

// `call` and what it points to lie on the device.
std::unique_ptr<WorldForward> world_forward(const LayerForward& call, const Rank& rank,
                                            WorldDevice& device, const Execution& execution);

}  // namespace qact::core
