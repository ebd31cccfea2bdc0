// The forward pass over several ranks: what each round counts of this rank's values, and the pass
// that writes codes and outputs (world_device.h). All counts are whole numbers, so that neither the
// order of atomics nor the number of ranks changes a bit.
#include <cmath>
#include <limits>
#include <span>

#include "qact/core/codes.h"
#include "qact/core/cuda/world.cuh"
#include "qact/core/cuda/world.h"
#include "qact/core/exact_moments.h"
#include "qact/core/mutant.h"

namespace qact::core::cuda {
namespace {

constexpr const char* kWhat = "quantile_layer_world";

// The smallest key of a channel's values, and of their reverse; kNone where there are none, kBad
// where one is not finite, which no finite value's key is.
constexpr uint32_t kNone = 0xffffffffu, kBad = 0;

template <class T, bool kColumns>
__global__ void world_extremes(WorldTensor<const T> x, WorldExtent extent, uint32_t* keys) {
  const uint32_t channel = world_channel<kColumns>();
  uint32_t low = kNone, high = kNone;
  for_each_own<kColumns>(extent, [&](uint32_t, uint32_t image, uint32_t place) {
    const float v = to_float(world_at(x, channel, image, place));
    const bool finite = isfinite(v) || QACT_MUTANT("cuda_world_not_finite");
    low = min(low, finite ? order_key(v, false) : kBad);
    high = min(high, finite ? order_key(v, true) : kBad);
  });
  if (!kColumns) {
    low = __reduce_min_sync(0xffffffffu, low);
    high = __reduce_min_sync(0xffffffffu, high);
    if (threadIdx.x % kWarp != 0) return;
  }
  if (channel >= extent.channels) return;
  atomicMin(keys + 2 * channel, low);
  atomicMin(keys + 2 * channel + 1, high);
}

// [channels] of -low and high, [ranks] of images.
__global__ void world_extremes_round(const uint32_t* keys, uint32_t channels, uint32_t rank,
                                     uint32_t ranks, double images, double* round) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const double infinity = std::numeric_limits<double>::infinity();
  if (i >= 2 * channels + ranks) return;
  if (i >= 2 * channels) {
    round[i] = i - 2 * channels == rank ? images : -infinity;
    return;
  }
  const bool high = i % 2;
  const uint32_t key = keys[i];
  const double value = key_value(key, high);
  round[i] = key == kNone ? -infinity : key == kBad ? infinity : high ? value : -value;
}

// Of the channel's own values, whose extremes are known.
template <class T, bool kColumns>
__global__ void world_moments(WorldTensor<const T> x, WorldExtent extent, const uint32_t* keys,
                              unsigned long long* words) {
  using Moments = ExactMoments<float>;
  const uint32_t channel = world_channel<kColumns>();
  const bool inside = channel < extent.channels;
  const uint32_t low = inside ? keys[2 * channel] : kBad;
  const uint32_t high = inside ? keys[2 * channel + 1] : kBad;
  const bool wanted = low != kBad && high != kBad;
  unsigned long long* own = words + Moments::kWords * channel;
  const auto add_word = [&](int i, int64_t digit) {
    atomicAdd(own + i, static_cast<unsigned long long>(digit));
  };
  Moments::Sums sums(wanted ? fmaxf(-key_value(low, false), key_value(high, true)) : 0.0f);
  if (wanted) {
    for_each_own<kColumns>(extent, [&](uint32_t, uint32_t image, uint32_t place) {
      sums.add(to_float(world_at(x, channel, image, place)), add_word);
    });
  }
  // A warp has fewer values than kMostValues: 2,112 blocks of more fit into no GPU's memory.
  if (!kColumns) sums.add_up([](unsigned long long word) { return sum_warp(word); });
  if (wanted && (kColumns || threadIdx.x % kWarp == 0)) sums.finish(add_word);
}

// Counters, of which a word of 32 bits has one or two.
struct Counters {
  uint32_t* words;
  bool packed;

  __device__ void count(uint32_t i) const {
    const uint32_t one = i % 2 && !QACT_MUTANT("cuda_world_packed") ? 1u << 16 : 1u;
    packed ? atomicAdd(words + i / 2, one) : atomicAdd(words + i, 1u);
  }
};

__device__ inline int32_t bin_of(const BinMap<float>& map, float t) {
  return __float2int_rd(t) + map.offset;
}

template <class T, bool kColumns>
__global__ void world_bins(WorldTensor<const T> x, WorldExtent extent, const WorldBins* channels,
                           Counters counters) {
  const uint32_t channel = world_channel<kColumns>();
  if (channel >= extent.channels || channels[channel].kind != WorldBins::binned) return;
  const WorldBins bins = channels[channel];
  for_each_own<kColumns>(extent, [&](uint32_t, uint32_t image, uint32_t place) {
    const float t = bins.map.t(to_float(world_at(x, channel, image, place)));
    counters.count(bins.first + bin_of(bins.map, t));
  });
}

// Which values have levels other than their bin's.
struct HeavyBins {
  const WorldHeavyBin* heavy;
  const WorldInterval* intervals;

  // The interval that holds t, or none.
  __device__ const WorldInterval* find(const WorldHeavyBin& in, float t) const {
    const uint32_t key = order_key(t, false);
    const int32_t after =
        first_where(in.begin, in.end, [&](int32_t i) { return intervals[i].begin > key; });
    if (after == in.begin || key >= intervals[after - 1].end) return nullptr;
    return intervals + after - 1;
  }
  // Null for a bin that is not heavy.
  __device__ const WorldHeavyBin* of(const WorldBins& bins, int32_t bin) const {
    const int32_t at = first_where(bins.heavy_begin, bins.heavy_end,
                                   [&](int32_t i) { return heavy[i].bin >= bin; });
    return at < bins.heavy_end && heavy[at].bin == bin ? heavy + at : nullptr;
  }
};

template <class T, bool kColumns>
__global__ void world_search(WorldTensor<const T> x, WorldExtent extent, const WorldBins* channels,
                             HeavyBins among, Counters counters) {
  const uint32_t channel = world_channel<kColumns>();
  if (channel >= extent.channels) return;
  const WorldBins bins = channels[channel];
  if (bins.heavy_begin == bins.heavy_end) return;
  for_each_own<kColumns>(extent, [&](uint32_t, uint32_t image, uint32_t place) {
    const float t = bins.map.t(to_float(world_at(x, channel, image, place)));
    const WorldHeavyBin* heavy = among.of(bins, bin_of(bins.map, t));
    const WorldInterval* in = heavy ? among.find(*heavy, t) : nullptr;
    if (in) counters.count(in->first + ((order_key(t, false) - in->begin) >> in->shift));
  });
}

template <class T, bool kColumns>
__global__ void world_gather(WorldTensor<const T> x, WorldExtent extent, const int64_t* channels,
                             int64_t n, int64_t first, uint32_t* bits) {
  const uint32_t slot = world_channel<kColumns>();
  if (slot >= extent.channels) return;
  const auto channel = static_cast<uint32_t>(channels[slot]);
  for_each_own<kColumns>(extent, [&](uint32_t i, uint32_t image, uint32_t place) {
    bits[slot * n + first + i] = __float_as_uint(to_float(world_at(x, channel, image, place)));
  });
}

template <class T>
struct WriteCall {
  WorldTensor<const T> x;
  WorldTensor<T> y;
  uint8_t* code;
  const WorldBins* channels;
  HeavyBins heavy;
  const uint8_t* codes;
  const float* outputs;
  const int32_t* table;
};

template <class T, bool kColumns>
__global__ void world_write(WriteCall<T> call, WorldExtent extent) {
  const uint32_t channel = world_channel<kColumns>();
  if (channel >= extent.channels) return;
  const WorldBins bins = call.channels[channel];
  const auto* table = reinterpret_cast<const CodeTable*>(call.table + channel * kCodeTableWords);
  const float scale = call.outputs[2 * channel], shift = call.outputs[2 * channel + 1];
  uint8_t* codes = call.code + static_cast<int64_t>(channel) * extent.n;
  for_each_own<kColumns>(extent, [&](uint32_t i, uint32_t image, uint32_t place) {
    uint8_t code = 0;
    if (bins.kind == WorldBins::gathered) {
      code = codes[i];
    } else if (bins.kind == WorldBins::binned) {
      const float t = bins.map.t(to_float(world_at(call.x, channel, image, place)));
      const int32_t bin = bin_of(bins.map, t);
      code = call.codes[bins.first + bin];
      const WorldHeavyBin* heavy = call.heavy.of(bins, bin);
      const WorldInterval* in = heavy ? call.heavy.find(*heavy, t) : nullptr;
      if (in && !QACT_MUTANT("cuda_world_heavy")) code += in->level - heavy->level;
    }
    if (bins.kind != WorldBins::gathered) codes[i] = code;
    if (!call.y.data) return;
    const float level = table->level[code];
    world_at(call.y, channel, image, place) =
        from_float<T>(__fadd_rn(__fmul_rn(level, scale), shift));
  });
}

template <class T>
class Device final : public WorldDevice {
 public:
  Device(const LayerForward& call, const Stream& stream, const WorldMemory& memory)
      : call_(call),
        memory_(memory),
        stream_(static_cast<cudaStream_t>(stream.handle)),
        channels_(static_cast<uint32_t>(call.shape.channels)),
        x_(call.x) {}

  Round summary(const Rank& rank) override {
    uint32_t* keys = filled<uint32_t>(2 * channels_, 0xff);
    const int64_t words = ExactMoments<float>::kWords * call_.shape.channels;
    auto* moments = filled<unsigned long long>(words, 0);
    run([&]<bool kColumns>(const WorldExtent& extent, dim3 grid) {
      launch(kWhat, world_extremes<T, kColumns>, grid, kWorldThreads, 0, stream_, x_, extent, keys);
      launch(kWhat, world_moments<T, kColumns>, grid, kWorldThreads, 0, stream_, x_, extent, keys,
             moments);
    });
    const int64_t count = 2 * call_.shape.channels + rank.ranks;
    auto* extremes = allocate<double>(count);
    const auto blocks = static_cast<unsigned>((count + kWorldThreads - 1) / kWorldThreads);
    launch(kWhat, world_extremes_round, dim3(blocks), kWorldThreads, 0, stream_, keys, channels_,
           static_cast<uint32_t>(rank.rank), static_cast<uint32_t>(rank.ranks),
           static_cast<double>(call_.shape.batch), extremes);
    return {{Reduction::Kind::max_f64, extremes, count},
            {Reduction::Kind::sum_i64, moments, words}};
  }

  Round bins(std::span<const WorldBins> channels, int64_t bins, bool packed) override {
    const WorldBins* own = copied(channels);
    return counted(bins, packed, [&](const Counters& counters) {
      run([&]<bool kColumns>(const WorldExtent& extent, dim3 grid) {
        launch(kWhat, world_bins<T, kColumns>, grid, kWorldThreads, 0, stream_, x_, extent, own,
               counters);
      });
    });
  }

  Round search(std::span<const WorldBins> channels, std::span<const WorldHeavyBin> heavy,
               std::span<const WorldInterval> intervals, int64_t counters, bool packed) override {
    const WorldBins* own = copied(channels);
    const HeavyBins among{copied(heavy), copied(intervals)};
    return counted(counters, packed, [&](const Counters& to) {
      run([&]<bool kColumns>(const WorldExtent& extent, dim3 grid) {
        launch(kWhat, world_search<T, kColumns>, grid, kWorldThreads, 0, stream_, x_, extent, own,
               among, to);
      });
    });
  }

  Round gather(std::span<const int64_t> channels, int64_t n, int64_t first) override {
    const auto count = static_cast<int64_t>(channels.size());
    const int64_t* own = copied(channels);
    uint32_t* bits = filled<uint32_t>(count * n, 0);
    run(count, [&]<bool kColumns>(const WorldExtent& extent, dim3 grid) {
      launch(kWhat, world_gather<T, kColumns>, grid, kWorldThreads, 0, stream_, x_, extent, own, n,
             first, bits);
    });
    return {{Reduction::Kind::sum_i32, bits, count * n}};
  }

  void to_host(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) memory_.to_host(to, from, bytes);
  }
  void to_device(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) memory_.to_device(to, from, bytes);
  }

  void write(const WorldTables& tables) override {
    const WriteCall<T> write{x_,
                             WorldTensor<T>(call_.y),
                             call_.code,
                             copied(tables.channels),
                             {copied(tables.heavy), copied(tables.intervals)},
                             copied(tables.codes),
                             copied(tables.outputs),
                             call_.table ? call_.table : copied(tables.table)};
    run([&]<bool kColumns>(const WorldExtent& extent, dim3 grid) {
      launch(kWhat, world_write<T, kColumns>, grid, kWorldThreads, 0, stream_, write, extent);
    });
  }

 private:
  template <class Value>
  Value* allocate(int64_t count) {
    return static_cast<Value*>(memory_.allocate(std::max<size_t>(1, count * sizeof(Value))));
  }
  template <class Value>
  Value* filled(int64_t count, int byte) {
    Value* out = allocate<Value>(count);
    check(cudaMemsetAsync(out, byte, count * sizeof(Value), stream_), kWhat);
    return out;
  }
  template <class Value>
  const Value* copied(std::span<const Value> from) {
    Value* out = allocate<Value>(static_cast<int64_t>(from.size()));
    to_device(out, from.data(), from.size_bytes());
    return out;
  }

  template <class Count>
  Round counted(int64_t counters, bool packed, const Count& count) {
    const int64_t words = packed ? (counters + 1) / 2 : counters;
    const Counters to{filled<uint32_t>(words, 0), packed};
    count(to);
    return {{Reduction::Kind::sum_i32, to.words, words}};
  }

  // start.operator()<columns>(extent, grid), unless this rank has no images.
  template <class Start>
  void run(int64_t channels, const Start& start) {
    if (call_.shape.batch == 0) return;
    const bool columns = world_columns(call_.x);
    const WorldExtent extent(call_.shape, channels, columns);
    with_columns(columns, [&]<bool kColumns>() {
      start.template operator()<kColumns>(extent, extent.grid(kColumns));
    });
  }
  template <class Start>
  void run(const Start& start) {
    run(call_.shape.channels, start);
  }

  LayerForward call_;
  WorldMemory memory_;
  cudaStream_t stream_;
  uint32_t channels_;
  WorldTensor<const T> x_;
};

}  // namespace

std::unique_ptr<WorldDevice> world_device(const LayerForward& call, const Stream& stream,
                                          const WorldMemory& memory) {
  std::unique_ptr<WorldDevice> out;
  with_type(call.x.dtype,
            [&]<class T>(Type<T>) { out = std::make_unique<Device<T>>(call, stream, memory); });
  return out;
}

}  // namespace qact::core::cuda
