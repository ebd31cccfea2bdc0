// The inner loops. Each SIMD level compiles the same bodies (those that kernel_tables.h
// includes) and fills tables of function pointers; all of them give the same
// bits, since lanes are fixed at 64 bytes and nothing contracts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qact/core/bin_plan.h"
#include "qact/core/codes.h"
#include "qact/core/view.h"

namespace qact::core::cpu {

// Values per operation: 64 bytes, whatever the SIMD level.
template <class Real>
inline constexpr int kLanes = 64 / sizeof(Real);

// The part of a tensor that a group of channels takes: for each image and each channel a
// run of contiguous values. Strips hold a channel's runs one after the other.
struct RunBlock {
  int64_t images, channels, size;
  int64_t image_stride, channel_stride, value_stride;  // in the tensor
  int64_t pitch;                                       // from strip to strip
};

inline constexpr int64_t kLongestStrip = 16384;

// The most bins whose codes are looked up by shuffles: as many can be read of any table.
inline constexpr int32_t kMostShuffled = 2048;

// Memory that will be needed soon, prefetched one cache line at a time while a kernel is busy with
// what it has: so many runs of lines, a jump of `skip` bytes after each.
struct Prefetch {
  const char* at;    // mapped: all else is looked up anew every time
  int64_t step = 0;  // 64, or 0 where there is nothing left
  int64_t skip = 0;
  int64_t lines = INT64_MAX, left = INT64_MAX, runs = INT64_MAX;

  static Prefetch nothing(const void* mapped) { return {static_cast<const char*>(mapped)}; }
  static Prefetch of_runs(const char* first, int64_t run_bytes, int64_t stride_bytes,
                          int64_t runs) {
    const int64_t lines = (run_bytes + 63) / 64;
    return {first, 64, stride_bytes - 64 * lines, lines, lines, runs};
  }
};

// Running sums of d = x - shift, one per lane.
template <class Real>
struct Moments {
  Real shift = 0;
  double sum[kLanes<Real>];
  double square[kLanes<Real>];
  Real low[kLanes<Real>];
  Real high[kLanes<Real>];
};

// Of x / unit and of its square.
struct WholeSums {
  int64_t sum;
  unsigned __int128 squares;
};

// z = (x - centre) * scale + shift
template <class Real>
struct Affine {
  Real centre = 0;
  Real scale = 1;
  Real shift = 0;
};

// Over a channel's values, k their levels: all that its outer norm needs.
struct LevelSums {
  int64_t k = 0;
  int64_t square = 0;
};

// What each code becomes: the fused layer's output,
template <class Real>
struct OutputTable {
  Real scale, shift;
  Real y[kCodes];         // level * scale + shift
  int16_t words[kCodes];  // the bits of that in a 16-bit type; levels for all others
};
// or its gradient, dx = dy * scale + shift. In float both are whole multiples of a unit, unless
// that is 0.
template <class Real>
struct GradTable {
  Real scale[kCodes], shift[kCodes];
  int16_t scale_units[kCodes], shift_units[kCodes];
  Real scale_unit, shift_unit;
};

// scale = f * by_f, shift = f * (plain + k * by_k) + input * by_input + rest
struct GradLine {
  double by_f, plain, by_k, by_input, rest;
};

// The sums of dy over the values of each code, in four tables in turn, so that equal neighbours do
// not wait for each other.
struct CodeSums {
  static constexpr int kTables = 4;
  double of[kTables][kCodes];
};

// What values become that are ranked by given quantiles. Both tables have kShortTable readable
// entries or more.
inline constexpr int32_t kShortTable = 128;
template <class Real>
struct ApplyTable {
  const Real* thresholds;  // `count` sorted ones, padded with +infinity as for search()
  int32_t count;
  const Real* outputs;  // of levels 0 to count; the last one again, up to kShortTable
};

// Over the values that it was applied to, k their levels.
struct ApplySums {
  double dz_x = 0, dz = 0, dy_k = 0, dy = 0;
};

// Runs of contiguous values of one channel, and from run to run in either tensor.
struct ChannelRuns {
  int64_t count, size;
  int64_t x_step, y_step;
};

// Contexts of at most so many values are sorted, a vector of channels at a time.
inline constexpr int32_t kShortContext = 256;

struct ShortRule {
  int levels;
  double bound, positive_share, bandwidth, eps;
};
template <class Real>
struct ShortAffine {
  double weight_in[kLanes<Real>], bias_in[kLanes<Real>], weight_out[kLanes<Real>],
      bias_out[kLanes<Real>];
};
template <class Real>
struct ShortNorm {
  double mean_in[kLanes<Real>], var_in[kLanes<Real>], mean_out[kLanes<Real>], var_out[kLanes<Real>];
  double inverse[kLanes<Real>];    // of the deviation
  double weight[2][kLanes<Real>];  // of a value below 0, and of others
  double none[kLanes<Real>];       // 0; NaN without a finite norm
};
// What both passes work in, of as many rows as the sort has: x, then keys in the order of z, and
// where each of them comes from and goes to.
template <class Real>
struct ShortScratch {
  Real *key, *z, *level;
  int32_t* place;
  // For the backward pass; four rows of waves for every value.
  Real *dy, *weight, *density, *waves;
};

// Over strips: contiguous values of one channel.
template <class Real>
struct TensorKernels {
  // From a tensor to strips, and back.
  void (*pack)(const void* from, DType dtype, const RunBlock& runs, Real* to);
  void (*unpack)(const Real* from, const RunBlock& runs, DType dtype, void* to);

  void (*moments)(const Real* x, int64_t n, Moments<Real>& state);
  void (*affine)(const Real* x, int64_t n, const Affine<Real>& map, Real* z);
  // Of n values, at most kLongestStrip, none above 2^42 units, a power of two. False where one is
  // no whole number of units, and in double always.
  bool (*whole_sums)(const Real* x, int64_t n, double unit, WholeSums& sums);

  void (*find_bins)(const Real* x, int64_t n, const BinMap<Real>& map, uint16_t* bin);
  // Finds bins and counts them into two histograms in turn, so that equal neighbours do not wait
  // for each other. The two may be one and the same.
  void (*count_bins)(const Real* x, int64_t n, const BinMap<Real>& map, uint16_t* bin,
                     uint32_t* even, uint32_t* odd, Prefetch& next);
  // The places of a strip's values in marked bins, marks[bin] >= 0, but for those that equal
  // `skip`. Returns how many; place has room for n.
  int64_t (*marked_places)(const Real* x, const uint16_t* bin, int64_t n, const int32_t* marks,
                           int32_t bins, Real skip, int32_t* place);

  // All else of a table with its scale and shift.
  void (*output_table)(const uint8_t* level, DType dtype, OutputTable<Real>& out);
  // y from codes, channel by channel in strips, to runs of side-by-side values of a tensor.
  void (*layer_output)(const uint8_t* code, const RunBlock& runs, const OutputTable<Real>* tables,
                       DType dtype, void* y);

  // level = the number of thresholds <= z among `count` sorted ones, which are padded
  // with +infinity to the next power of two less one.
  void (*search)(const Real* z, int64_t n, const Real* thresholds, int32_t count, int32_t* level);
  // y = outputs[level of z], z = map(x); NaN where z is.
  void (*apply)(const Real* x, const ChannelRuns& runs, const Affine<Real>& map,
                const ApplyTable<Real>& table, Real* y);
  // dx = scale * dz, dz = dy * outputs[level of z], and 0 where z is infinite. Adds to `sums`.
  void (*apply_grad)(const Real* x, const Real* dy, int64_t n, const Affine<Real>& map,
                     const ApplyTable<Real>& table, ApplySums& sums, Real* dx);

  // Prefetches what is read next, and what will be written.
  void (*grad_sums)(const Real* dy, const uint8_t* code, int64_t n, CodeSums& sums, Prefetch& next,
                    Prefetch& written);
  // dx from dy and codes, channel by channel in strips, to runs of a tensor; the strips of codes
  // lie code_pitch apart.
  void (*grad_output)(const Real* dy, const uint8_t* code, int64_t code_pitch, const RunBlock& runs,
                      const GradTable<Real>* tables, DType dtype, void* dx);
  void (*grad_table)(const GradLine& line, const CodeTable& table, GradTable<Real>& map);

  // The fused layer on one context of n values, n <= kShortContext, in each of kLanes channels,
  // which lie side by side in scratch.key. A channel without a finite norm comes out as NaN. Leaves
  // z in scratch.z, in ascending order. There may be no y.
  void (*short_forward)(int32_t n, const ShortRule& rule, const ShortAffine<Real>& affine,
                        ShortNorm<Real>& norm, ShortScratch<Real>& scratch, Real* y);
  // grad_affine: [lanes][4].
  void (*short_backward)(const Real* dy, int32_t n, const ShortRule& rule,
                         const ShortAffine<Real>& affine, ShortNorm<Real>& norm,
                         ShortScratch<Real>& scratch, double* grad_affine, Real* dx);
};

// min(cap, trunc(base + gain * (2 * (before[b] + rank) + count[b]))); heavier bins than the limit
// are told of
struct BinLevels {
  int32_t rank = 0;
  float base = 0;
  float gain = 0;
  int32_t cap = 0;
  int32_t limit = 0;
};

// The cells of CodeCells among bins: from u to bins by place = t(u) * scale + offset.
struct CellEdges {
  float first, width;
  float scale, offset;
  int32_t cells;
};

// A histogram, its exclusive prefix sums, and the levels of its bins; so many values.
struct BinCounts {
  const uint32_t* count;
  const int32_t* before;
  const uint16_t* level;
  int32_t bins, values;
};

// padded_bins() of both: where each run of equal codes starts, and the sums of count * bin up to
// each bin, modulo 2^32.
struct RunScratch {
  int32_t* start;
  uint32_t* moment;
};

// The values of each code and their level; its first bin, and the sum over its values of the bins
// from there on.
struct CodeRuns {
  int32_t n[kCodes];  // a channel has fewer than 2^30 values
  int32_t first[kCodes];
  int64_t moment[kCodes];
  uint8_t level[kCodes];
};

// The density at a code's input, in units: node = input * scale + offset, kept within [0, last];
// the nodes have one more.
struct DensityNodes {
  static constexpr int kShort = 127;  // so many, and one more, can always be read

  const float* density;
  float scale, offset, last;
};

// Over a context: of the density f, k the level, in units of the input.
struct DensitySums {
  double f, f_k, f_input, f_k_input;
};
struct GradSums {
  double dy, dy_k, f_dy, f_dy_input;
};

// Entries of memory for a table of n, whose end the table kernels round up.
inline constexpr size_t padded(size_t n) { return (n + 15) / 16 * 16; }

// The same for tables by bin, which have up to two entries more than bins. They are taken 64 bins
// at a time or, from any bin on, 16.
inline constexpr size_t padded_bins(size_t bins) { return (bins + 2 + 63) / 64 * 64 + 16; }

// Over the small tables of one channel. Arrays may be read and written up to the next
// multiple of 16 entries: padded(n) of them.
struct TableKernels {
  // A strip's codes by bin, as bytes.
  void (*code_bytes)(const uint16_t* bin, int64_t n, const uint8_t* codes, int32_t bins,
                     uint8_t* code, Prefetch& written);
  // The bins at which cells end: the first whose middle is not below the end.
  void (*cell_ends)(const CellEdges& edges, int32_t bins, int32_t* end);
  // From the number of cells that begin at each bin to codes, which must not descend, and how the
  // bins' values fall on them; and the sums of xhat by code, of bins whose middles lie at origin +
  // bin * width.
  void (*bin_codes)(const BinCounts& of, uint8_t* code, const RunScratch& scratch, CodeRuns& runs,
                    double origin, double width, double* xhat);
  // The means of xhat by code in units; and the density there.
  void (*code_inputs)(const int32_t* n, const double* sum, double unit, int16_t* input);
  void (*code_densities)(const int16_t* input, const DensityNodes& nodes, float* density);
  // Over n values of each code.
  LevelSums (*level_sums)(const int32_t* n, const uint8_t* level);
  void (*density_sums)(const int32_t* n, const CodeTable& table, DensitySums& sums);
  // What the gradient needs of the sums of so many blocks, `step` apart.
  void (*grad_means)(const CodeSums* blocks, int64_t count, int64_t step, const CodeTable& table,
                     GradSums& sums);
  // The exclusive prefix sums, before[0] to before[bins].
  void (*prefix_sums)(const uint32_t* count, int32_t bins, int32_t* before);
  // The level at the middle of each bin's mass. Returns whether any count exceeds the limit. Reads
  // and writes 15 entries more.
  bool (*bin_levels)(const uint32_t* count, const int32_t* before, int32_t bins,
                     const BinLevels& rule, uint16_t* level);
  // The bins of more than `limit` values, in order. Returns how many.
  int32_t (*heavier)(const uint32_t* count, int32_t bins, int32_t limit, int32_t* found);
  // The cumulative count at position[i], or at i itself if there are none, times scale plus
  // offset: whole = before[b], and part of what is before[b + 1] more, spread evenly over bin b;
  // bins + 1 is read too. Positions ascend. If no part is wanted, the count at the nearest edge.
  void (*cumulative_at)(const int32_t* before, int32_t bins, const float* position, float offset,
                        float scale, int32_t n, int32_t* whole, float* part);
  // The weight between cumulative counts i and i + 1, i < n, of which the first `negatives` weigh
  // weight[0] each and the others weight[1]. There may be no parts.
  void (*cell_weights)(const int32_t* whole, const float* part, int32_t n, int32_t negatives,
                       const float* weight, float* out);
  // out[i] = scale * sum_k taps[k] * in[i + k]
  void (*convolve)(const float* in, const float* taps, int32_t taps_count, float scale, float* out,
                   int32_t n);
  // A kept context from the cumulative counts at its bins' upper edges.
  void (*context_counts)(const int32_t* whole, const float* part, int64_t* context);
  // context_blend (context.h) where totals and ratios are short; false elsewhere.
  bool (*blend_short)(const int64_t* a, int64_t a_units, const int64_t* b, int64_t b_units,
                      int64_t* blended);
};

template <class Real>
const TensorKernels<Real>& tensor_kernels(Simd level);
const TableKernels& table_kernels(Simd level);

}  // namespace qact::core::cpu
