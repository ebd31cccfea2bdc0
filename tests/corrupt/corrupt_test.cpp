#include "qact/corrupt/corrupt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "qact/corrupt/select.h"
#include "tests/base/message.h"
#include "tests/corrupt/test_images.h"

namespace qact::corrupt {
namespace {

std::vector<uint8_t> corrupted(const Corruptor& corruptor, const std::vector<uint8_t>& in,
                               int64_t first, int64_t count, int threads) {
  std::vector<uint8_t> out(in.size());
  corruptor.apply(in.data(), first, count, out.data(), threads);
  return out;
}

TEST(Corrupt, TableHasTheBenchmarkAndTheExtraOnes) {
  int benchmark = 0, extra = 0, mnist = 0;
  std::set<std::string_view> names;
  for (const Corruption& corruption : corruptions()) {
    benchmark += corruption.benchmark;
    extra += corruption.extra;
    mnist += corruption.mnist_severity > 0;
    names.insert(corruption.name);
    EXPECT_EQ(&find_corruption(corruption.name), &corruption);
  }
  EXPECT_EQ(benchmark, 15);
  EXPECT_EQ(extra, 4);
  EXPECT_EQ(mnist, 15);
  EXPECT_EQ(names.size(), corruptions().size());
}

// The same image for any batch, thread count and order; another one for another seed.
TEST(Corrupt, DependsOnSeedAndIndexAlone) {
  const std::vector<std::tuple<image::Size, int>> cases = {{{32, 32, 3}, 19}, {{28, 28, 1}, 27}};
  for (const auto& [size, count] : cases) {
    const int64_t n = size.values();
    const auto in = test::test_images(40, size.height, size.channels);
    for (const Corruption& corruption : corruptions().first(count)) {
      const Corruptor corruptor(corruption.name, 3, size, 5);
      const auto whole = corrupted(corruptor, in, 100, 40, 1);
      EXPECT_EQ(whole, corrupted(corruptor, in, 100, 40, 3)) << corruption.name;
      std::vector<uint8_t> one(n);
      for (const int64_t i : {39, 7, 0}) {
        Corruptor(corruption.name, 3, size, 5).apply(&in[i * n], 100 + i, one.data());
        EXPECT_TRUE(std::equal(one.begin(), one.end(), &whole[i * n])) << corruption.name << i;
      }
    }
    const Corruptor a("gaussian_noise", 3, size, 5), b("gaussian_noise", 3, size, 6);
    EXPECT_NE(corrupted(a, in, 0, 40, 1), corrupted(b, in, 0, 40, 1));
    EXPECT_NE(corrupted(a, in, 0, 40, 1), corrupted(a, in, 1, 40, 1));
  }
}

// One increasing curve for each 500 images; another for the next ones.
TEST(Corrupt, ToneIsACurveOfFiveHundredImages) {
  const image::Size size{16, 16, 1};
  std::vector<uint8_t> in(256), first(256), last(256), next(256);
  std::iota(in.begin(), in.end(), 0);
  for (int severity = 1; severity <= kSeverities; ++severity) {
    const Corruptor corruptor("tone", severity, size, 3);
    const double most = std::pow(4.0, severity / 5.0);
    corruptor.apply(in.data(), 500, first.data());
    corruptor.apply(in.data(), 999, last.data());
    corruptor.apply(in.data(), 1000, next.data());
    EXPECT_EQ(first, last);
    EXPECT_NE(first, next);
    EXPECT_NE(first, in);
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    for (int v = 0; v < 256; ++v) {
      EXPECT_GE(first[v] + 0.5, 255 * std::pow(v / 255.0, most)) << v;
      EXPECT_LE(first[v] - 0.5, 255 * std::pow(v / 255.0, 1 / most)) << v;
    }
  }
}

TEST(Corrupt, Gamma4IsTheFourthPowerAtEverySeverity) {
  const image::Size size{16, 16, 1};
  std::vector<uint8_t> in(256), out(256);
  std::iota(in.begin(), in.end(), 0);
  for (int severity = 1; severity <= kSeverities; ++severity) {
    for (const int64_t index : {0, 700}) {
      Corruptor("gamma4", severity, size, severity).apply(in.data(), index, out.data());
      for (int v = 0; v < 256; ++v) {
        const double share = v / 255.0;
        EXPECT_EQ(out[v], std::floor(255 * share * share * share * share + 0.5)) << v;
      }
    }
  }
}

TEST(Corrupt, SelectsByNameGroupAndSize) {
  EXPECT_EQ(select_corruptions({}, {32, 32, 3}).size(), 15u);
  EXPECT_EQ(select_corruptions({}, {32, 32, 3}).front(), "gaussian_noise");
  EXPECT_EQ(select_corruptions({}, {28, 28, 1}).front(), "shot_noise");
  EXPECT_EQ(select_corruptions({"tone", "extra"}, {28, 28, 1}).size(), 5u);
  EXPECT_EQ(select_corruptions({"tone", "fog", "tone"}, {}),
            (std::vector<std::string>{"tone", "fog"}));
  EXPECT_EQ(select_corruptions({"fog", "benchmark"}, {}).size(), 15u);
  EXPECT_EQ(select_severities({5, 1, 5, 2}), (std::vector<int>{1, 2, 5}));
  EXPECT_NE(message_of([] {
              select_corruptions({"tones"}, {});
            }).find("canny_edges, tone, gamma4, got tones"),
            std::string::npos);
}

// Any size and channel count works: larger, not square, grey.
TEST(Corrupt, TakesOtherSizes) {
  for (const image::Size size :
       {image::Size{16, 16, 3}, {40, 56, 3}, {24, 32, 1}, {70, 100, 3}, {300, 130, 1}}) {
    std::vector<uint8_t> in(size.values()), out(size.values());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 37 % 251);
    for (const Corruption& corruption : corruptions().first(19)) {
      // The largest elastic kernels take seconds on the larger images.
      for (const int severity : {2, 5}) {
        Corruptor(corruption.name, severity, size).apply(in.data(), 0, out.data());
        EXPECT_NE(in, out) << corruption.name << " at " << severity << ", width " << size.width;
      }
    }
  }
}

// Every value is written, whatever was there before, and nothing beyond. What only moves values
// leaves a uniform image as it is.
TEST(Corrupt, TakesExtremeImages) {
  const image::Size size{32, 32, 3};
  const std::set<std::string_view> moves = {"gaussian_blur", "defocus_blur", "motion_blur",
                                            "zoom_blur",     "glass_blur",   "pixelate"};
  for (const uint8_t value : {0, 255}) {
    const std::vector<uint8_t> in(size.values(), value);
    std::vector<uint8_t> out(size.values() + 16, 7), again(size.values() + 16, 200);
    for (const Corruption& corruption : corruptions().first(19)) {
      for (int severity = 1; severity <= kSeverities; ++severity) {
        SCOPED_TRACE(std::string(corruption.name) + " " + std::to_string(severity));
        std::fill(out.begin(), out.end(), uint8_t{7});
        std::fill(again.begin(), again.end(), uint8_t{200});
        Corruptor(corruption.name, severity, size).apply(in.data(), 0, out.data());
        Corruptor(corruption.name, severity, size).apply(in.data(), 0, again.data());
        EXPECT_TRUE(std::equal(out.begin(), out.end() - 16, again.begin()));
        EXPECT_TRUE(std::all_of(out.end() - 16, out.end(), [](uint8_t v) { return v == 7; }));
        if (!moves.contains(corruption.name)) continue;
        for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(out[i], value, 2);
      }
    }
  }
}

TEST(Corrupt, RefusesWhatItCannotDo) {
  const image::Size size{32, 32, 3};
  const std::string unknown = message_of([] { find_corruption("gausian_noise"); });
  EXPECT_NE(unknown.find("expected one of gaussian_noise, shot_noise"), std::string::npos);
  EXPECT_NE(unknown.find("got gausian_noise"), std::string::npos);
  EXPECT_EQ(message_of([&] { Corruptor("fog", 0, size); }),
            "[corrupt] expected a severity from 1 to 5 for fog, got 0");
  EXPECT_EQ(message_of([&] { Corruptor("fog", 6, size); }),
            "[corrupt] expected a severity from 1 to 5 for fog, got 6");
  EXPECT_EQ(message_of([&] { Corruptor("fog", 1, {32, 32, 4}); }),
            "[corrupt] expected images of 1 or 3 channels, got 32x32x4");
  EXPECT_EQ(message_of([&] { Corruptor("fog", 1, {8, 32, 3}); }),
            "[corrupt] expected images of at least 16x16, got 8x32x3");
  EXPECT_EQ(message_of([&] { Corruptor("shear", 1, size); }),
            "[corrupt] expected images of 28x28x1 for shear, got 32x32x3");
  EXPECT_EQ(message_of([] { FrostTextures::from_folder("/nowhere", "none"); }),
            "[frost] expected a folder with frost1.png to frost5.jpg, got /nowhere");
}

}  // namespace
}  // namespace qact::corrupt
