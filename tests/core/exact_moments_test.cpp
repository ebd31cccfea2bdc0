// Sums that no order and no spread of the values changes, against whole numbers and long double.
#include "qact/core/exact_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "qact/core/cpu/dispatch.h"
#include "qact/core/cpu/world_moments.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {
namespace {

template <class Real>
using Result = typename ExactMoments<Real>::Result;

// The values in some parts, each with a largest value of its own.
template <class Real, class AddBlock>
Result<Real> moments_by(const std::vector<Real>& x, size_t parts, const AddBlock& add_block) {
  std::vector<int64_t> words(ExactMoments<Real>::kWords);
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = x.size() * part / parts, end = x.size() * (part + 1) / parts;
    Real largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    ExactMoments<Real>::add(x.data() + begin, static_cast<int64_t>(end - begin), largest, add_block,
                            words.data());
  }
  return ExactMoments<Real>::of(words.data(), static_cast<int64_t>(x.size()));
}

// One value after the other; the kernels of every SIMD level agree.
template <class Real>
Result<Real> moments_of(const std::vector<Real>& x, size_t parts = 1) {
  const auto none = [](const Real*, int64_t, typename ExactMoments<Real>::Sums&) { return false; };
  const Result<Real> out = moments_by(x, parts, none);
  for (const Simd simd : simd_levels()) {
    const Result<Real> found =
        moments_by(x, parts, cpu::AddBlock<Real>{cpu::tensor_kernels<Real>(simd)});
    EXPECT_EQ(found.mean, out.mean) << cpu::name(simd);
    EXPECT_EQ(found.variance, out.variance) << cpu::name(simd);
  }
  return out;
}

// Signs and magnitudes over `powers` powers of two from 2^lowest on.
template <class Real>
std::vector<Real> spread(size_t n, int lowest, int powers) {
  std::mt19937_64 random(7);
  std::vector<Real> out(n);
  for (Real& v : out) {
    const auto part = static_cast<Real>(random() >> 11) / static_cast<Real>(int64_t{1} << 53);
    const auto power = static_cast<int>(random() % static_cast<uint64_t>(powers));
    v = std::ldexp(random() % 2 ? part : -part, lowest + power);
  }
  return out;
}

template <class Real>
class ExactMomentsOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ExactMomentsOf, Reals);

TYPED_TEST(ExactMomentsOf, NoOrderAndNoSpreadChangesABit) {
  using Limits = std::numeric_limits<TypeParam>;
  const int lowest = Limits::min_exponent - Limits::digits, all = Limits::max_exponent - lowest;
  for (const int powers : {1, 40, 100, all}) {
    std::vector<TypeParam> x = spread<TypeParam>(3000, powers == all ? lowest : -20, powers);
    const Result<TypeParam> whole = moments_of(x);
    for (const size_t parts : {2, 7, 3000}) {
      std::shuffle(x.begin(), x.end(), std::mt19937(static_cast<unsigned>(parts)));
      const Result<TypeParam> found = moments_of(x, parts);
      EXPECT_EQ(found.mean, whole.mean) << powers << " powers in " << parts;
      EXPECT_EQ(found.variance, whole.variance) << powers << " powers in " << parts;
    }
  }
}

TYPED_TEST(ExactMomentsOf, AreThoseOfLongDouble) {
  for (const int powers : {1, 8, 60}) {
    for (const TypeParam offset : {0.0, 1.0, -1000.0}) {
      std::vector<TypeParam> x = spread<TypeParam>(5000, -8, powers);
      for (TypeParam& v : x) v += offset;
      const auto n = static_cast<long double>(x.size());
      long double mean = 0, variance = 0;
      for (const TypeParam v : x) mean += v / n;
      for (const TypeParam v : x) variance += (v - mean) * (v - mean) / n;
      const Result<TypeParam> found = moments_of(x);
      EXPECT_NEAR(found.mean, static_cast<double>(mean),
                  1e-14 * std::sqrt(found.variance) + 1e-15 * std::abs(found.mean));
      EXPECT_NEAR(found.variance, static_cast<double>(variance), 1e-13 * found.variance);
    }
  }
}

// Sums of whole numbers have one value.
TYPED_TEST(ExactMomentsOf, OfAwkwardValuesAreExact) {
  using Limits = std::numeric_limits<TypeParam>;
  const auto expect = [](const std::vector<TypeParam>& x, double mean, double variance) {
    const Result<TypeParam> found = moments_of(x);
    EXPECT_EQ(found.mean, mean);
    EXPECT_EQ(found.variance, variance);
  };
  expect({1, 2, 3, 4}, 2.5, 1.25);
  expect({-1, -2, -3, -4}, -2.5, 1.25);
  expect({0, -0.0, 0, 0}, 0, 0);
  expect({TypeParam(0.1), TypeParam(0.1), TypeParam(0.1)}, TypeParam(0.1), 0);
  const double tiny = Limits::denorm_min(), most = Limits::max();
  expect({Limits::denorm_min(), -Limits::denorm_min()}, 0, tiny * tiny);
  expect({Limits::denorm_min(), 3 * Limits::denorm_min()}, 2 * tiny, tiny * tiny);
  expect({Limits::max(), -Limits::max()}, 0, most * most);
  // The neighbour of a large number: what is far below the square of either.
  const TypeParam large = 1 << 20, next = std::nextafter(large, 2 * large);
  const double gap = static_cast<double>(next) - static_cast<double>(large);
  expect({large, large, next, next}, large + gap / 2, gap * gap / 4);
  // A value whose bits are below those of the largest.
  const double small = std::ldexp(1.0, -60);
  expect({1, -1, TypeParam(small), TypeParam(-small)}, 0, (1 + small * small) / 2);
}

// As many as one sum in registers takes, and more.
TEST(ExactMoments, OfManyEqualValuesDoNotOverflow) {
  const std::vector<double> x(ExactMoments<double>::Sums::kMostValues + 2, -std::nextafter(2.0, 0));
  EXPECT_EQ(moments_of(x).mean, -std::nextafter(2.0, 0));
  EXPECT_EQ(moments_of(x).variance, 0);
}

}  // namespace
}  // namespace qact::core::testing
