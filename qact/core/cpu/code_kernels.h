// Codes and what becomes of them; see TensorKernels and TableKernels in kernels.h. Included once
// per SIMD level.
#pragma once

#include "qact/core/cpu/code_words.h"
#include "qact/core/cpu/kernels.h"
#include "qact/core/cpu/simd_tables.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// See CodeCells.
void cell_ends(const CellEdges& shared_edges, int32_t bins, int32_t* end) {
  using V = Vec<float>;
  const CellEdges edges = shared_edges;
  float lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = (float)(l + 1);
  const V lane = load<V>(lanes), one = all<V>(1.0f), last = all<V>((float)bins);
  for (int32_t j = 0; j < edges.cells; j += 16) {
    const V u = (lane + (float)j) * edges.width + edges.first;
    const V rest = one - absolute(u);
    const V t = square_root(maximum(one / (rest * rest) - one, V{}));
    const V at = with_sign(t, u) * edges.scale + edges.offset;
    // The first bin whose middle is not below the edge.
    const V up = minimum(maximum(at + 0.5f, V{}), last);
    store(end + j, truncate<float>(up));
  }
}

// `code` comes with the number of cells that begin at each bin, which are added up. Finds where
// each run of equal codes starts, and returns how many there are.
[[gnu::noinline]] int32_t find_runs(const BinCounts& shared, uint8_t* code,
                                    const RunScratch& shared_scratch) {
  using U = Lanes<uint32_t, 16>;
  const BinCounts of = shared;
  const RunScratch scratch = shared_scratch;
  uint32_t lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = (uint32_t)l;
  const U lane = load<U>(lanes);
  ByteVec cells{}, last{};
  U total{};
  int32_t runs = 0;
  for (int32_t b = 0; b < of.bins; b += kBytes) {
    const ByteVec begins = prefix_sum(load<ByteVec>(code + b));
    const ByteVec codes = begins + cells + load_bytes(of.level + b);
    if (!QACT_MUTANT("bin_codes_cells")) cells = cells + all_last(begins);
    store(code + b, codes);
    uint64_t changes = changed_bytes(codes, QACT_MUTANT("bin_codes_last") ? ByteVec{} : last);
    if (b == 0) changes |= 1;
    if (of.bins - b < kBytes) changes &= (uint64_t{1} << (of.bins - b)) - 1;
    last = codes;
    for (int l = 0; l < kBytes; l += 16) {
      runs += write_places((uint32_t)(changes >> l) & 0xffff, b + l, scratch.start + runs);
      const U products = load<U>(of.count + b + l) * (lane + (uint32_t)(b + l));
      const U sums = prefix_sum(products);
      store(scratch.moment + b + l,
            (QACT_MUTANT("bin_codes_moment") ? sums : sums + total) - products);
      total += all_last(sums);
    }
  }
  scratch.start[runs] = of.bins;
  scratch.moment[of.bins] = total.part[0][0];
  return runs;
}

// The sums of count * bin over each run from its first bin on, one by one.
[[gnu::noinline]] void add_long_moments(const BinCounts& of, const uint8_t* code,
                                        const int32_t* start, int32_t runs, CodeRuns& to) {
  for (int32_t r = 0; r < runs; ++r) {
    int64_t sum = 0;
    const int32_t begin = start[r];
    for (int32_t b = begin; b < start[r + 1]; ++b) {
      sum += (int64_t)of.count[b] * (b - (QACT_MUTANT("bin_codes_long") ? 0 : begin));
    }
    to.moment[code[begin]] = sum;
  }
}

// Without a branch: which runs are empty has no pattern.
void bin_codes(const BinCounts& of, uint8_t* code, const RunScratch& scratch, CodeRuns& to,
               double origin, double width, double* xhat) {
  constexpr int32_t kLongest = 1 << 18;  // times 16,384 bins: 2^32
  const int32_t runs = find_runs(of, code, scratch);
  const int32_t *start = scratch.start, *before = of.before;
  const uint32_t* moment = scratch.moment;
  const uint16_t* level = of.level;
  int32_t begin = 0, below = 0;
  uint32_t sum = 0;
  for (int32_t r = 1; r <= runs; ++r) {
    const int32_t end = start[r], upto = before[end], n = upto - below, c = code[begin];
    const uint32_t sum_upto = moment[end];
    to.n[c] = n;
    to.first[c] = begin;
    // Modulo 2^32, which holds it unless the channel is very long.
    to.moment[c] = (uint32_t)(sum_upto - sum - (uint32_t)n * (uint32_t)begin);
    to.level[c] = (uint8_t)(level[begin] & (-n >> 31));  // 0 where there are no values
    begin = end;
    below = upto;
    sum = sum_upto;
  }
  if (of.values > kLongest) add_long_moments(of, code, start, runs, to);
  for (int c = 0; c < kCodes; c += 8) {
    const auto first = load_as<double>(to.first + c) * width + origin;
    store(xhat + c, load_as<double>(to.n + c) * first + load_as<double>(to.moment + c) * width);
  }
}

LevelSums level_sums(const int32_t* n, const uint8_t* level) {
  LevelSums out;
  for (int c = 0; c < kCodes; ++c) {
    const int64_t values = n[c];
    out.k += values * level[c];
    out.square += values * (level[c] * level[c]);
  }
  return out;
}

void code_inputs(const int32_t* n, const double* sum, double unit, int16_t* input) {
  using V = Vec<float>;
  const double inverse = unit > 0 ? 1 / unit : 0;
  const V most = all<V>(32767.0f), least = all<V>(-32767.0f), one = all<V>(1.0f);
  for (int c = 0; c < kCodes; c += 16) {
    float sums[16];
    for (int l = 0; l < 16; ++l) sums[l] = (float)(sum[c + l] * inverse);
    const V mean = load<V>(sums) / maximum(load_as<float>(n + c), one);
    // The middle of the outermost bin may lie beyond its values.
    const V kept = minimum(maximum(mean, least), most);
    store(input + c,
          convert<Lanes<int16_t, 16>>(truncate<float>(kept + with_sign(all<V>(0.5f), kept))));
  }
}

inline double sum_lanes(const Vec<double>& v) {
  double lanes[8], sum = 0;
  store(lanes, v);
  for (const double lane : lanes) sum += lane;
  return sum;
}

void density_sums(const int32_t* n, const CodeTable& table, DensitySums& out) {
  Vec<double> f_sum{}, f_k{}, f_input{}, f_k_input{};
  for (int c = 0; c < kCodes; c += 8) {
    const auto f = load_as<double>(n + c) * load_as<double>(table.density + c);
    const auto k = load_as<double>(table.level + c),
               of_input = f * load_as<double>(table.input + c);
    f_sum += f;
    f_k += f * k;
    f_input += of_input;
    f_k_input += of_input * k;
  }
  out = {sum_lanes(f_sum), sum_lanes(f_k), sum_lanes(f_input), sum_lanes(f_k_input)};
}

void code_densities(const int16_t* input, const DensityNodes& shared_nodes, float* density) {
  using V = Vec<float>;
  const DensityNodes nodes = shared_nodes;
  const V last = all<V>(nodes.last);
  const auto interpolate = [&](const auto& find) {
    for (int c = 0; c < kCodes; c += 16) {
      const V t =
          minimum(maximum(load_as<float>(input + c) * nodes.scale + nodes.offset, V{}), last);
      const auto node = truncate<float>(t);
      const V from = find(nodes.density, node), to = find(nodes.density + 1, node);
      const V share = QACT_MUTANT("density_interpolation") ? V{} : t - to_real<float>(node);
      store(density + c, from + (to - from) * share);
    }
  };
  if (nodes.last < DensityNodes::kShort) {
    return interpolate([](const float* f, const auto& at) { return lookup<4>(f, at); });
  }
  interpolate([](const float* f, const auto& at) { return gather(f, at); });
}

template <class Real>
void output_table(const uint8_t* level, DType dtype, OutputTable<Real>& out) {
  for (int c = 0; c < kCodes; ++c) out.words[c] = level[c];
  with_stored<Real>((void*)out.words, dtype, [&](auto* words) {
    for (int c = 0; c < kCodes; c += kLanes<Real>) {
      const auto y = load_as<Real>(level + c) * out.scale + out.shift;
      store(out.y + c, y);
      if constexpr (sizeof(*words) == 2) store_stored(words + c, y);
    }
  });
}

template <class Real>
void layer_output(const uint8_t* code, const RunBlock& runs, const OutputTable<Real>* tables,
                  DType dtype, void* out) {
  with_stored<Real>(out, dtype, [&]<class Stored>(Stored* y) {
    using Run = OutputRun<Real, Stored>;
    if (runs.size == kLanes<Real>) {
      return for_each_two_runs(y, runs, [&](bool both, Stored* to, int64_t strip, int64_t c) {
        if (!both) return output_one_by_one(tables[c], code + strip, runs.size, to);
        Run::two_vectors(tables[c], code + strip, to, to + runs.image_stride);
      });
    }
    for_each_channel_run(y, runs, [&](int64_t c) {
      return [code, run = Run{tables[c]}](Stored* to, int64_t strip, int64_t size) {
        run(code + strip, size, to);
      };
    });
  });
}

}  // namespace
}  // namespace qact::core::cpu
