// Ties of running contexts: every path counts them where the CPU does.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/core/cuda/paths.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

// Normal values, some of which are changed; sorted, so that a share of either sign is known.
using Change = std::function<void(std::vector<double>&, int64_t negatives)>;

std::vector<double> changed(int64_t n, int64_t c, const Change& change) {
  std::vector<double> values = draw(Distribution::normal, n, 800 + c);
  std::sort(values.begin(), values.end());
  const auto negatives =
      std::count_if(values.begin(), values.end(), [](double v) { return v < 0; });
  change(values, negatives);
  return values;
}

void fill(std::vector<double>& values, int64_t from, int64_t count, double value) {
  std::fill_n(values.begin() + from, count, value);
}

struct Kind {
  const char* name;
  Change change;
  bool crowded = false;  // near z = 0, where the CPU rounds z in another place
};

std::vector<Kind> kinds() {
  const auto each = [](const std::function<double(int64_t, double)>& of) {
    return [=](std::vector<double>& values, int64_t) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = of(i, values[i]);
    };
  };
  const auto background = [=](double at) {
    return each([=](int64_t i, double v) { return i % 4 ? at : v; });
  };
  return {
      {"rectified", each([](int64_t, double v) { return std::max(v, 0.0); })},
      {"rectified, with both zeros", each([](int64_t i, double v) {
         return v > 0 ? v : i % 2 ? 0.0 : -0.0;
       })},
      {"a background below 0", background(-0.6)},
      {"a background at 0", background(0)},
      {"a background above 0", background(0.31)},
      {"a background far out", each([](int64_t i, double v) { return i % 3 ? v : 40.0; })},
      {"all equal", each([](int64_t, double) { return 1.5; })},
      {"five numbers",
       each([](int64_t i, double) { return std::exp(static_cast<double>(i % 5)); })},
      // A hair apart: ties share a bin with each other, and with values that do not tie.
      {"neighbours", each([](int64_t i, double v) {
         const double close = 0.7 + 1e-6 * static_cast<double>(i % 7);
         return i % 3 ? (i % 2 ? v : close) : 0.7 + 1e-6 * v;
       })},
      {"ties in a long tail",
       each([](int64_t i, double v) { return i % 5 ? v * v * v * v * v : 0.3; }), true},
      // As many as a tie has at least, of either sign, and one less.
      {"at the least",
       [](std::vector<double>& values, int64_t negatives) {
         const auto n = static_cast<int64_t>(values.size());
         const auto least = [](int64_t sign) { return std::max<int64_t>(8, (sign + 63) / 64); };
         fill(values, 0, least(negatives), -0.45);
         fill(values, n - least(n - negatives), least(n - negatives), 0.45);
       }},
      {"one less",
       [](std::vector<double>& values, int64_t negatives) {
         const auto n = static_cast<int64_t>(values.size());
         const auto less = [](int64_t sign) { return std::max<int64_t>(8, (sign + 63) / 64) - 1; };
         fill(values, 0, less(negatives), -0.45);
         fill(values, n - less(n - negatives), less(n - negatives), 0.45);
       }},
      // Eight are a tie of a short side; next to them, seven.
      {"eight of a few", each([](int64_t i, double v) {
         const bool eighth = i % 8 == 0;
         return eighth && i < 64    ? -4.05
                : eighth && i < 120 ? -3.95
                : eighth            ? -4 + 0.1 * v
                                    : 2 + 0.3 * v;
       })},
  };
}

// The values below each bin, at most so many apart.
int64_t apart(const int64_t* a, const int64_t* b) {
  int64_t ahead = 0, worst = 0;
  for (int i = 0; i < kContextBins; ++i) {
    ahead += a[i] - b[i];
    worst = std::max(worst, std::abs(ahead));
  }
  return worst / kContextUnit;
}

void expect_context_of_the_cpu(const Path& path, DType dtype) {
  const auto all = kinds();
  Given given(path, dtype, [&](int64_t n, int64_t c) {
    return changed(n, c, all[(c - path.beside + all.size()) % all.size()].change);
  });
  const CudaLayerRun found(given.x, given.grad_y, given.affines, path.quantile, path.beside);
  const LayerRun expected(given.x, given.grad_y, given.affines, path.quantile, threads(1));
  for (size_t c = 0; c < all.size(); ++c) {
    EXPECT_LE(
        apart(found.context.data() + c * kContextBins, expected.context.data() + c * kContextBins),
        all[c].crowded ? 6 + path.shape.context_size() / 400 : 2)
        << all[c].name;
  }
}

TEST(CudaTies, AreCountedAsOnTheCpu) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Path& path : short_list(dtype, static_cast<int64_t>(kinds().size()))) {
      SCOPED_TRACE(std::string(path.name) + " " + name(dtype));
      expect_context_of_the_cpu(path, dtype);
    }
  }
}

}  // namespace
}  // namespace qact::core::testing
