#include "tests/core/cuda/paths.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qact/core/contexts.h"
#include "tests/core/activation_run.h"

namespace qact::core::testing {
namespace {

using emulator::Schedule;

constexpr Schedule kSchedules[] = {{Schedule::reversed, 0}, {Schedule::shuffled, 1}};

Quantile with_levels(int levels, Algorithm algorithm = Algorithm::automatic) {
  Quantile out;
  out.levels = levels;
  out.algorithm = algorithm;
  return out;
}

constexpr Layout kRows = Layout::contiguous, kColumns = Layout::channels_last;

std::string cpp_name(DType dtype) {
  return dtype == DType::f32    ? "float"
         : dtype == DType::bf16 ? "qact::core::testing::bfloat16_bits"
                                : "qact::core::testing::half_bits";
}

}  // namespace

// Limits<2048, 127> is Short, Limits<4096, 255> Long.
std::vector<Path> paths(DType dtype) {
  const bool wide = dtype == DType::f32;
  // Values of a pack in rows, and what a thread of a short channel has of them.
  const std::string p = wide ? "4" : "8", brief = wide ? "2" : "1", one = wide ? "4" : "2";
  const std::string s = "Limits<2048, 127>", l = "Limits<4096, 255>";
  const auto small = [&](const std::string& rest) { return "forward_small<%, " + rest + ">"; };
  const auto grad = [&](const std::string& rest) { return "backward_small<%, " + rest + ">"; };
  const auto passes = [&](const std::string& size, const std::string& solve) {
    return std::vector<std::string>{"summarise_rows<%, " + size + ">",
                                    "count_rows<%, " + size + ">", "solve<%, " + solve + ">",
                                    "write_rows<%, " + size + ">"};
  };
  const auto columns = [&](const std::string& size, const std::string& solve) {
    return std::vector<std::string>{
        "summarise_columns<%, 32, " + size + ">", "count_columns<%, 8, " + size + ", 1024>",
        "solve<%, " + solve + ">", "write_columns<%, 32, " + size + ", 1024>"};
  };
  const auto grad_rows = [&](const std::string& size) {
    return std::vector<std::string>{"sum_rows<%, " + size + ">", "apply_rows<%, " + size + ">"};
  };
  const auto grad_columns = [&](const std::string& size) {
    return std::vector<std::string>{"sum_columns<%, 32, " + size + ">", "merge_columns_parts",
                                    "apply_columns<%, 32, " + size + ">"};
  };
  return {
      {"a warp in rows, a value a lane",
       {2, 11, 16},
       kRows,
       {"forward_short<%, 1>"},
       {"backward_short<%, 1>"}},
      {"a warp in rows, two values a lane",
       {3, 2, 16},
       kRows,
       {"forward_short<%, 2>"},
       {"backward_short<%, 2>"}},
      {"a warp in rows", {3, 2, 24}, kRows, {"forward_short<%, 4>"}, {"backward_short<%, 4>"}},
      {"a warp in rows that do not pack",
       {5, 2, 51},
       kRows,
       {"forward_short<%, 8>"},
       {"backward_short<%, 8>"}},
      {"a warp in columns",
       {200, 3, 1},
       kColumns,
       {"forward_short<%, 8>"},
       {"backward_short<%, 8>"}},
      {"a brief block",
       {4, 2, 512},
       kRows,
       {small(s + ", " + p + ", 1, 256, " + brief + ", 1")},
       {grad(p + ", 1, 256, " + brief + ", 1")}},
      {"one block",
       {4, 2, 2048},
       kRows,
       {small(s + ", " + p + ", 1, 512, " + one + ", 1")},
       {grad(p + ", 1, 512, " + one + ", 1")}},
      {"one block that does not pack",
       {3, 2, 701},
       kRows,
       {small(s + ", 1, 1, 512, 0, 1")},
       {grad("1, 1, 256, 0, 1")}},
      {"one block in a slice",
       {2, 2, 704},
       kRows,
       {small(s + ", " + p + ", 1, 256, " + brief + ", 1")},
       {grad(p + ", 1, 256, " + brief + ", 1")},
       {},
       1},
      {"one block of 127 levels",
       {3, 2, 400},
       kRows,
       {small(s + ", " + p + ", 1, 256, " + brief + ", 1")},
       {grad(p + ", 1, 256, " + brief + ", 1")},
       with_levels(127)},
      {"one block of 128 levels",
       {3, 2, 400},
       kRows,
       {small(l + ", 1, 1, 512, 0, 1")},
       {grad(p + ", 1, 256, " + brief + ", 1")},
       with_levels(128)},
      {"one block of 255 levels",
       {3, 2, 1000},
       kRows,
       {small(l + ", 1, 1, 512, 0, 1")},
       {grad(p + ", 1, 512, " + one + ", 1")},
       with_levels(255)},
      {"one block, exact",
       {3, 2, 400},
       kRows,
       {small(s + ", " + p + ", 1, 256, " + brief + ", 1")},
       {grad(p + ", 1, 256, " + brief + ", 1")},
       with(Algorithm::exact)},
      {"a long block",
       {1, 96, 8208},
       kRows,
       {small(l + ", " + p + ", 1, 1024, 0, 1")},
       {grad(p + ", 1, 1024, 0, 1")}},
      {"clusters of two",
       {2, 48, 4112},
       kRows,
       {small(l + ", " + p + ", 1, 1024, 0, 2")},
       {grad(p + ", 1, 1024, 0, 2")}},
      {"clusters of four",
       {3, 24, 2744},
       kRows,
       {small(l + ", " + p + ", 1, 1024, 0, 4")},
       {grad(p + ", 1, 1024, 0, 4")}},
      {"clusters of four, exact",
       {1, 24, 8200},
       kRows,
       {small(l + ", " + p + ", 1, 1024, 0, 4")},
       {grad(p + ", 1, 1024, 0, 4")},
       with(Algorithm::exact)},
      {"four columns",
       {300, 8, 5},
       kColumns,
       {small(s + ", 4, 4, 1024, 2, 1")},
       {grad("4, 4, 512, 4, 1")}},
      {"four columns of a slice",
       {300, 8, 3},
       kColumns,
       {small(s + ", 4, 4, 1024, 2, 1")},
       {grad("4, 4, 512, 4, 1")},
       {},
       4},
      {"four columns, exact",
       {100, 4, 3},
       kColumns,
       {small(s + ", 4, 4, 1024, 2, 1")},
       {grad("4, 4, 512, 4, 1")},
       with(Algorithm::exact)},
      {"passes over rows", {2, 3, 4104}, kRows, passes(p, s + ", 512"), grad_rows(p)},
      {"passes over rows that do not pack",
       {3, 2, 2801},
       kRows,
       passes("1", s + ", 512"),
       grad_rows("1")},
      {"passes over a slice of rows",
       {2, 2, 4120},
       kRows,
       passes(p, s + ", 512"),
       grad_rows(p),
       {},
       2},
      {"passes over long rows", {5, 2, 8000}, kRows, passes(p, l + ", 512"), grad_rows(p)},
      {"passes over rows, exact",
       {4, 2, 2056},
       kRows,
       passes(p, l + ", 1024"),
       grad_rows(p),
       with(Algorithm::exact)},
      {"passes over rows of 128 levels",
       {4, 2, 2056},
       kRows,
       passes(p, l + ", 512"),
       grad_rows(p),
       with_levels(128)},
      {"passes over columns", {3000, 6, 1}, kColumns, columns("2", s + ", 512"), grad_columns("2")},
      {"passes over columns that do not pack",
       {700, 35, 2},
       kColumns,
       columns("1", s + ", 512"),
       grad_columns("1")},
      {"passes over a slice of columns",
       {2500, 6, 1},
       kColumns,
       columns("2", s + ", 512"),
       grad_columns("2"),
       {},
       2},
      {"passes over long columns",
       {350, 4, 100},
       kColumns,
       columns("2", l + ", 512"),
       grad_columns("2")},
      {"passes over columns, exact",
       {900, 2, 3},
       kColumns,
       columns("2", l + ", 1024"),
       grad_columns("2"),
       with(Algorithm::exact)},
      {"passes over columns of 255 levels",
       {900, 4, 3},
       kColumns,
       columns("2", l + ", 512"),
       grad_columns("2"),
       with_levels(255)},
  };
}

std::vector<Path> paths_of_sets(DType dtype) {
  std::vector<Path> out;
  for (Path path : paths(dtype)) {
    // How many channels there are decides whether they have clusters of blocks.
    if (path.shape.channels >= 24 && path.shape.channels < 96 && path.layout == kRows) continue;
    path.sets = path.shape.channels < 24 ? 3 : 2;
    out.push_back(path);
  }
  return out;
}

std::vector<Path> short_list(DType dtype, int64_t channels) {
  const std::string wanted[] = {"a warp in rows",
                                "a warp in columns",
                                "a brief block",
                                "one block that does not pack",
                                "one block of 128 levels",
                                "one block, exact",
                                "a long block",
                                "clusters of two",
                                "clusters of four",
                                "clusters of four, exact",
                                "four columns",
                                "four columns, exact",
                                "passes over rows",
                                "passes over long rows",
                                "passes over rows, exact",
                                "passes over columns",
                                "passes over columns, exact"};
  std::vector<Path> out;
  for (Path path : paths(dtype)) {
    if (std::find(std::begin(wanted), std::end(wanted), path.name) == std::end(wanted)) continue;
    path.shape.channels = std::max(path.shape.channels, channels);
    out.push_back(path);
  }
  return out;
}

// Names alone, in the order of the launches.
void expect_path(const Path& path, DType dtype, const std::vector<emulator::Launch>& launches) {
  std::vector<std::string> expected = path.forward, found;
  const int64_t n = path.shape.context_size();
  const bool by_a_warp = n <= kExactLimit && path.quantile.exact_for(n);
  if (!kept_contexts({}, path.shape, dtype).others && !by_a_warp) {  // is ranked again
    expected.insert(expected.end(), path.forward.begin(), path.forward.end());
  }
  expected.insert(expected.end(), path.backward.begin(), path.backward.end());
  for (std::string& kernel : expected) {
    if (const size_t at = kernel.find('%'); at != std::string::npos)
      kernel.replace(at, 1, cpp_name(dtype));
  }
  for (const emulator::Launch& launch : launches) {
    std::string kernel = launch.kernel;
    if (kernel.empty()) kernel = "merge_columns_parts";  // has no name outside of its file
    for (const std::string gone : {"void ", "qact::core::cuda::"}) {
      for (size_t at = 0; (at = kernel.find(gone, at)) != std::string::npos;)
        kernel.erase(at, gone.size());
    }
    found.push_back(kernel);
  }
  EXPECT_EQ(found, expected);
}

Given::Given(const Path& path, DType dtype, const Values& values)
    : x({path.sets * path.shape.batch, path.shape.channels + 2 * path.beside, path.shape.spatial},
        dtype, path.layout),
      grad_y(x),
      affines(path.shape.channels),
      channels(path.shape.channels) {
  const int64_t n = path.shape.context_size();
  const auto of_sets = [&](int64_t c, const auto& of_context) {
    std::vector<double> all;
    for (int64_t s = 0; s < path.sets; ++s) {
      const std::vector<double> own = of_context(s, s * x.shape().channels + c);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  for (int64_t c = 0; c < x.shape().channels; ++c) {
    x.set(c, of_sets(c, [&](int64_t, int64_t k) { return values(n, k); }));
    const std::vector<double> stored = x.get(c);
    grad_y.set(c, of_sets(c, [&](int64_t s, int64_t k) {
                 const auto first = stored.begin() + s * n;
                 return with_trend(draw(Distribution::normal, n, 900 + k), {first, first + n});
               }));
  }
}

// The k-th context's values in a wider tensor; and others in their place.
std::vector<double> context_of(const Path& path, const Tensor& tensor, int64_t k) {
  const int64_t n = path.shape.context_size();
  const std::vector<double> all = tensor.get(k % path.shape.channels + path.beside);
  const auto first = all.begin() + k / path.shape.channels * n;
  return {first, first + n};
}
void set_context(const Path& path, Tensor& tensor, int64_t k, const std::vector<double>& values) {
  const int64_t c = k % path.shape.channels + path.beside;
  std::vector<double> all = tensor.get(c);
  std::copy(values.begin(), values.end(),
            all.begin() + k / path.shape.channels * path.shape.context_size());
  tensor.set(c, all);
}

void expect_oracle(const Path& path, DType dtype, Given& given,
                   const std::vector<int64_t>& contexts, const std::vector<int64_t>& gradients) {
  const double eps = 1e-12;  // so small that the outer norm leaves nothing of a gradient's trend
  const auto run = [&] {
    return CudaLayerRun(given.x, given.grad_y, given.affines, path.quantile, path.beside, eps,
                        path.sets);
  };
  emulator::device().launches.clear();
  const CudaLayerRun first = run();
  expect_path(path, dtype, emulator::device().launches);
  ASSERT_TRUE(first.intact(given.x));
  const auto given_to = [&](int64_t k) {
    LayerCase out{context_of(path, given.x, k),
                  context_of(path, given.grad_y, k),
                  given.affines.of(k % path.shape.channels),
                  dtype,
                  path.quantile.exact_for(path.shape.context_size()),
                  DType::f32,
                  tolerance::Kept::codes};
    out.parameters.eps = eps;
    out.parameters.quantile.levels = path.quantile.levels;
    return out;
  };
  for (const int64_t k : contexts) {
    SCOPED_TRACE("context " + std::to_string(k));
    expect_levels(given_to(k), first.found(k));
    expect_norms(given_to(k), first.found(k));
  }
  // Rounded to 16 bits, a gradient would have parts along 1 and the output at all places.
  if (dtype != DType::f32 || gradients.empty()) return;
  const int64_t n = path.shape.context_size(), asked = std::min<int64_t>(n, 60);
  std::vector<int64_t> places;
  for (int64_t j = 0; j < asked; ++j) places.push_back(j * (n - 1) / (asked - 1));
  for (const int64_t k : gradients) {
    set_context(path, given.grad_y, k, sparse_gradient(first.levels_of(k), places, 77 + k));
  }
  const CudaLayerRun second = run();
  for (const int64_t k : gradients) {
    SCOPED_TRACE("gradient of context " + std::to_string(k));
    expect_sparse_gradient(given_to(k), second.found(k), places);
  }
}

void expect_same_bits(const Path& path, Given& given) {
  const auto run = [&](const Schedule& schedule) {
    emulator::device().schedule = schedule;
    const CudaLayerRun out(given.x, given.grad_y, given.affines, path.quantile, path.beside, 1e-5,
                           path.sets);
    emulator::device().schedule = {};
    return out;
  };
  const CudaLayerRun in_order = run({});
  for (const Schedule& schedule : kSchedules) {
    const CudaLayerRun other = run(schedule);
    EXPECT_EQ(other.y, in_order.y) << schedule.order << " " << schedule.seed;
    EXPECT_TRUE(other == in_order) << schedule.order << " " << schedule.seed;
  }
}

}  // namespace qact::core::testing
