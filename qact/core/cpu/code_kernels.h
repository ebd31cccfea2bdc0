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

// `code` comes with the number of cells that begin at each bin, which are added up. Returns how
// many runs of equal codes there are.
int32_t bin_codes(const uint32_t* count, const int32_t* level, int32_t bins, uint8_t* code,
                  int32_t* start, uint32_t* moment) {
  using I = IntVec<float>;
  using U = Lanes<uint32_t, 16>;
  uint32_t lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = (uint32_t)l;
  const U lane = load<U>(lanes);
  U total{};
  I cells{};
  int32_t runs = 0, before = -1;
  moment[0] = 0;
  for (int32_t b = 0; b < bins; b += 16) {
    const I begins = prefix_sum(load_short<16>(code + b));
    const I codes = begins + cells + load<I>(level + b);
    if (!QACT_MUTANT("bin_codes_cells")) cells = cells + all_last(begins);
    store(code + b, convert<Lanes<uint8_t, 16>>(codes));
    runs += change_places(codes, before, b, bins - b < 16 ? bins - b : 16, start + runs);

    const U sums = prefix_sum(load<U>(count + b) * (lane + (uint32_t)b));
    store(moment + b + 1, QACT_MUTANT("bin_codes_moment") ? sums : sums + total);
    total += all_last(sums);
  }
  start[runs] = bins;
  return runs;
}

void code_xhat(const CodeRuns& runs, const int32_t* n, double origin, double width, double* xhat) {
  for (int c = 0; c < kCodes; c += 8) {
    const auto first = load_as<double>(runs.first + c) * width + origin;
    store(xhat + c, load_as<double>(n + c) * first + load_as<double>(runs.moment + c) * width);
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
  for (int c = 0; c < kCodes; c += 16) {
    const V t = minimum(maximum(load_as<float>(input + c) * nodes.scale + nodes.offset, V{}), last);
    const auto node = truncate<float>(t);
    const V from = gather(nodes.density, node), to = gather(nodes.density + 1, node);
    const V share = QACT_MUTANT("density_interpolation") ? V{} : t - to_real<float>(node);
    store(density + c, from + (to - from) * share);
  }
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
        if (!both) return Run::one_vector(tables[c], code + strip, to);
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
