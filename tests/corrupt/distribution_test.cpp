// Random corruptions: statistics of the change they make, against those of the
// libraries they were published with (scripts/corruption_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "qact/base/parallel.h"
#include "qact/corrupt/corrupt.h"
#include "tests/corrupt/test_images.h"

namespace qact::corrupt {
namespace {

constexpr int kGroups = 20, kRings = 8;

using Numbers = std::vector<double>;

// |F|^2 / side^4 of one channel, summed over rings of frequencies.
void add_spectrum(const Numbers& plane, int side, double share, double* rings) {
  using Complex = std::complex<double>;
  Numbers cosine(side), sine(side);
  for (int k = 0; k < side; ++k) {
    cosine[k] = std::cos(2 * std::numbers::pi * k / side);
    sine[k] = std::sin(2 * std::numbers::pi * k / side);
  }
  const auto turn = [&](int k) { return Complex(cosine[k % side], -sine[k % side]); };
  // A real plane's spectrum is symmetric: half of the columns tell all.
  const int half = side / 2 + 1;
  std::vector<Complex> rows(side * half);
  for (int y = 0; y < side; ++y) {
    for (int u = 0; u < half; ++u) {
      double re = 0, im = 0;
      for (int x = 0, k = 0; x < side; ++x, k = (k + u) % side) {
        re += plane[y * side + x] * cosine[k];
        im -= plane[y * side + x] * sine[k];
      }
      rows[y * half + u] = {re, im};
    }
  }
  for (int v = 0; v < side; ++v) {
    for (int u = 0; u < half; ++u) {
      Complex sum = 0;
      for (int y = 0, k = 0; y < side; ++y, k = (k + v) % side) sum += rows[y * half + u] * turn(k);
      const double radius = std::hypot(std::min(v, side - v), u);
      const int ring = std::min(static_cast<int>(radius * kRings / (side / 2.0)), kRings - 1);
      const double times = u == 0 || 2 * u == side ? 1 : 2;
      rings[ring] += share * times * std::norm(sum) / std::pow(side, 4);
    }
  }
}

// What one image adds to the sums: the channels' means, their products, the spectrum.
Numbers moments(const image::Image& in, const image::Image& out) {
  const int channels = in.size.channels, side = in.size.height, pixels = side * side;
  std::vector<Numbers> planes(channels, Numbers(pixels));
  for (int i = 0; i < pixels * channels; ++i) {
    planes[i % channels][i / channels] = out.pixels[i] - double(in.pixels[i]);
  }
  Numbers sums;
  for (const Numbers& plane : planes) {
    double sum = 0;
    for (const double d : plane) sum += d;
    sums.push_back(sum / pixels);
  }
  for (const Numbers& a : planes) {
    for (const Numbers& b : planes) {
      double sum = 0;
      for (int i = 0; i < pixels; ++i) sum += a[i] * b[i];
      sums.push_back(sum / pixels);
    }
  }
  sums.resize(sums.size() + kRings);
  for (const Numbers& plane : planes) {
    add_spectrum(plane, side, 1.0 / channels, sums.data() + sums.size() - kRings);
  }
  return sums;
}

// Mean, deviation, spectrum, correlations between channels.
Numbers statistics(const Numbers& sums, int channels) {
  double mean = 0, square = 0;
  const auto product = [&](int a, int b) { return sums[channels + a * channels + b]; };
  for (int c = 0; c < channels; ++c) {
    mean += sums[c] / channels;
    square += product(c, c) / channels;
  }
  Numbers out = {mean, std::sqrt(square - mean * mean)};
  out.insert(out.end(), sums.end() - kRings, sums.end());
  const auto covariance = [&](int a, int b) { return product(a, b) - sums[a] * sums[b]; };
  const auto spread = [&](int a) { return std::sqrt(std::max(covariance(a, a), 1e-12)); };
  if (channels == 3) {
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
      out.push_back(covariance(a, b) / spread(a) / spread(b));
    }
  }
  return out;
}

struct Measured {
  Numbers value, error;
};

// The statistics and, by the jackknife over groups of images, their standard errors.
Measured measure(const Corruptor& corruptor, int count, int side, int channels) {
  std::vector<Numbers> groups(kGroups);
  base::parallel_for(kGroups, 0, 1, [&](int64_t g) {
    const int each = count / kGroups;
    for (int64_t i = g * each; i < (g + 1) * each; ++i) {
      const image::Image in = test::test_image(i, side, channels);
      image::Image out(in.size);
      corruptor.apply(in.pixels.data(), i, out.pixels.data());
      const Numbers found = moments(in, out);
      groups[g].resize(found.size());
      for (size_t k = 0; k < found.size(); ++k) groups[g][k] += found[k] / each;
    }
  });
  const auto mean_without = [&](int left_out) {
    Numbers sum(groups[0].size());
    for (int g = 0; g < kGroups; ++g) {
      for (size_t k = 0; k < sum.size() && g != left_out; ++k) sum[k] += groups[g][k];
    }
    for (double& v : sum) v /= left_out < 0 ? kGroups : kGroups - 1;
    return statistics(sum, channels);
  };
  Measured result{mean_without(-1), {}};
  Numbers sum(result.value.size()), squares(result.value.size());
  for (int g = 0; g < kGroups; ++g) {
    const Numbers without = mean_without(g);
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k] += without[k] / kGroups;
      squares[k] += without[k] * without[k] / kGroups;
    }
  }
  for (size_t k = 0; k < sum.size(); ++k) {
    const double variance = std::max(squares[k] - sum[k] * sum[k], 0.0);
    result.error.push_back(std::sqrt(variance * (kGroups - 1)));
  }
  return result;
}

// 3% of the deviation for the mean, 3% for the deviation and the spectrum, .03 for a
// correlation.
double tolerance(size_t k, const Numbers& expected) {
  if (k == 0) return 0.03 * expected[1];
  return k < 2 + kRings ? 0.03 * expected[k] : 0.03;
}

std::string label(size_t k) {
  if (k < 2) return k == 0 ? "mean" : "deviation";
  return k < 2 + kRings ? "spectrum " + std::to_string(k - 2)
                        : "correlation " + std::to_string(k - 2 - kRings);
}

// Fewer images than the fixtures have keep the suite fast; the environment asks for all,
// and for the full strictness: of thousands of comparisons between estimates from few
// images, some are three standard errors apart by chance.
bool all_images() { return std::getenv("QACT_CORRUPT_ALL_IMAGES") != nullptr; }

void compare(const nlohmann::json& row, std::shared_ptr<const FrostTextures> frost) {
  const int side = row["side"], channels = row["channels"], severity = row["severity"];
  const std::string name = row["name"];
  const int usual = side > 32 ? 20 : 60;
  const int count = all_images() ? row["images"].get<int>() : usual;
  if (side > 32 && severity != 2 && severity != 5 && !all_images()) return;
  const Corruptor corruptor(name, severity, {side, side, channels}, 1, std::move(frost));
  const Measured ours = measure(corruptor, count, side, channels);
  const Numbers expected = row["value"], error = row["error"];
  ASSERT_EQ(ours.value.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    const double chance = (all_images() ? 3 : 5) * std::hypot(error[k], ours.error[k]);
    EXPECT_NEAR(ours.value[k], expected[k], std::max(tolerance(k, expected), chance))
        << name << " at severity " << severity << ", side " << side << ", " << label(k)
        << "; standard errors " << ours.error[k] << " and " << error[k];
  }
}

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

class Distribution : public ::testing::TestWithParam<int> {};

TEST_P(Distribution, OfTheChangeIsTheOriginals) {
  const int side = GetParam();
  const auto frost = test::synthetic_textures();
  const auto folder = std::filesystem::path(QACT_TEST_FIXTURES) / "corrupt";
  for (const auto& row : read_json(folder / "distribution.json")) {
    if (row["side"] == side) compare(row, frost);
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, Distribution, ::testing::Values(28, 32, 64, 96));

}  // namespace
}  // namespace qact::corrupt
